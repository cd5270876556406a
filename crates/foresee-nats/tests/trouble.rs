//! What goes wrong with a server is said clearly, and soon enough.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use foresee_batch::{InProcess, Plan, perform};
use foresee_nats::{Auth, Caller, Fleet, NatsQueue, Publisher, Server, Tls, Worker, work};
use foresee_observe::{Outlet as _, ProgramId};
use foresee_report::{exit_status, json};

use crate::fleet::{run, run_and};
use crate::harness::{ECHO, Nats, WorkerProcess, names, plan, server};

/// Does everything that is there, and ends.
pub(crate) fn worker(
    server: Server,
    folder: &std::path::Path,
) -> Result<foresee_nats::Worked, String> {
    let worker = of_this_process(server, folder);
    work(&worker, &AtomicBool::new(false), &|_| ()).map_err(|error| error.to_string())
}

fn of_this_process(server: Server, folder: &std::path::Path) -> Worker {
    Worker {
        server,
        jobs: 2,
        folder: folder.join("cache"),
        most_bytes: 1 << 20,
        idle: Some(Duration::from_millis(1500)),
        perform: Arc::new(|job, blobs| perform(job, blobs, 1)),
        served: Vec::new(),
    }
}

/// Everyone who uses a queue: what each is called, and why it cannot, if it cannot.
fn everyone(server: &Server, folder: &std::path::Path) -> Vec<(&'static str, Option<String>)> {
    let plan = plan(folder, &names(1));
    let (nobody, silent) = (Arc::new(|| true), Arc::new(|_: &str| ()));
    let group = "echo".parse().unwrap();
    let id = ProgramId([7; 16]);
    vec![
        ("batch", run_with_worker(&plan, server).err()),
        ("worker", worker(server.clone(), folder).err()),
        ("explore", Caller::open(server, &group, nobody, silent).err().map(|e| e.to_string())),
        ("run, send", Publisher::open(server, "p", id).err().map(|e| e.to_string())),
        ("observe", Fleet::open(server, "questions").err().map(|e| e.to_string())),
    ]
}

/// Has the jobs of a plan done by a worker of this process.
fn run_with_worker(plan: &Plan, server: &Server) -> Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                if worker(server.clone(), folder.path()).is_err() {
                    break;
                }
            }
        });
        let queue = NatsQueue { server: server.clone(), tell: &|_| () };
        let done = run(plan, &queue).map(drop).map_err(|error| error.to_string());
        is_over.store(true, Ordering::Relaxed);
        done
    })
}

pub(crate) fn impatient(server: Server) -> Server {
    Server { patience: Duration::from_millis(1500), ..server }
}

#[test]
fn an_unreachable_server_is_named() {
    let folder = tempfile::tempdir().unwrap();
    for (who, error) in everyone(&impatient(server("nats://127.0.0.1:9")), folder.path()) {
        let error = error.unwrap();
        assert!(error.starts_with("cannot reach nats://127.0.0.1:9"), "{who}: {error}");
    }
    for (who, error) in everyone(&server("http://x"), folder.path()) {
        let error = error.unwrap();
        assert!(error.contains("is not the address of a NATS server"), "{who}: {error}");
    }
}

#[test]
fn credentials_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    let nats = Nats::start(&["--user", "me", "--pass", "secret"]);
    let with = |auth| Server { auth, ..impatient(nats.server()) };
    for wrong in [Auth::None, Auth::User("me".into(), "wrong".into()), Auth::Token("x".into())] {
        for (who, error) in everyone(&with(wrong), folder.path()) {
            let error = error.unwrap();
            assert!(error.contains("refuses these credentials"), "{who}: {error}");
        }
    }
    for (who, error) in everyone(&with(Auth::User("me".into(), "secret".into())), folder.path()) {
        assert_eq!(error, None, "{who}");
    }
    let url = nats.url().replace("//", "//me:secret@");
    assert_eq!(worker(Server { url, ..with(Auth::None) }, folder.path()).err(), None);
    let missing = with(Auth::Credentials(folder.path().join("missing.creds")));
    let error = worker(missing, folder.path()).unwrap_err();
    assert!(error.starts_with("cannot read") && error.contains("missing.creds"), "{error}");
}

#[test]
fn a_token_opens_the_door() {
    let folder = tempfile::tempdir().unwrap();
    let nats = Nats::start(&["--auth", "sesame"]);
    let with =
        |token: &str| Server { auth: Auth::Token(token.to_owned()), ..impatient(nats.server()) };
    assert!(worker(with("sesame"), folder.path()).is_ok());
    assert!(worker(with("barley"), folder.path()).unwrap_err().contains("refuses"));
}

#[test]
fn an_nkey_opens_the_door() {
    // The example of the documentation of NATS.
    const PUBLIC: &str = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4";
    const SEED: &str = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY";
    let folder = tempfile::tempdir().unwrap();
    let seed = folder.path().join("seed");
    std::fs::write(&seed, SEED).unwrap();
    let nats = Nats::configured(&format!("authorization: {{ users: [ {{ nkey: {PUBLIC} }} ] }}\n"));
    let with = |seed| Server { auth: Auth::Nkey(seed), ..impatient(nats.server()) };
    assert!(worker(with(seed.clone()), folder.path()).is_ok());
    std::fs::write(&seed, PUBLIC).unwrap();
    let error = worker(with(seed), folder.path()).unwrap_err();
    assert!(error.contains("has no seed of a user's nkey"), "{error}");
    assert!(worker(impatient(nats.server()), folder.path()).is_err());
}

#[test]
fn a_full_store_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let nats = Nats::configured("jetstream: { max_file_store: 20KB }\n");
    let queue = NatsQueue { server: impatient(nats.server()), tell: &|_| () };
    let plan = plan(folder.path(), &names(200));
    let error = run(&plan, &queue).unwrap_err().to_string();
    assert!(error.starts_with("cannot ") && error.contains("resource"), "{error}");
}

#[test]
fn a_store_that_is_full_costs_no_one_more_than_patience() {
    let nats = Nats::configured("jetstream: { max_file_store: 60KB }\n");
    let _worker = WorkerProcess::start(&nats.url());
    let group = ECHO.parse().unwrap();
    let caller = |server| Caller::open(server, &group, Arc::new(|| false), Arc::new(|_| ()));
    let caller = caller(&impatient(nats.server())).unwrap();
    assert_eq!(caller.call(b"small").unwrap(), b"llams");
    // There is room for the request, and then not for the answer, or not even for the request.
    let error = (0..100).find_map(|_| caller.call(&[7; 9_000]).err()).unwrap().to_string();
    assert!(error.starts_with("cannot ") && error.contains("resource"), "{error}");
    // The space for events is set aside beforehand.
    let publisher = Publisher::open(&impatient(nats.server()), "p", ProgramId([7; 16]));
    let error = publisher.err().unwrap().to_string();
    assert!(error.starts_with("cannot open the stream of events"), "{error}");
    assert!(error.contains("resource") && error.contains("max_file_store"), "{error}");
}

#[test]
fn what_is_larger_than_a_message_goes_in_pieces_or_as_an_object() {
    let nats = Nats::configured("max_payload: 6KB\n");
    let _worker = WorkerProcess::start(&nats.url());
    let caller =
        Caller::open(&nats.server(), &ECHO.parse().unwrap(), Arc::new(|| false), Arc::new(|_| ()));
    let request: Vec<u8> = (0..50_000_u32).map(|i| i as u8).collect();
    let answer = caller.unwrap().call(&request).unwrap();
    assert!(answer.iter().eq(request.iter().rev()));
    let mut publisher = Publisher::open(&nats.server(), "p", ProgramId([7; 16])).unwrap();
    assert!(publisher.put(&request, false).unwrap());
    publisher.end().unwrap();
}

#[test]
fn a_job_that_is_too_large_fails_alone() {
    let folder = tempfile::tempdir().unwrap();
    let nats = Nats::configured("max_payload: 6KB\n");
    let mut names = names(1);
    // Names of traces are part of their jobs.
    names.push("x".repeat(200));
    let mut plan = plan(folder.path(), &names);
    plan.jobs[1].job.as_mut().unwrap().trace.name = "long".repeat(1000);
    let _worker = WorkerProcess::start(&nats.url());
    let queue = NatsQueue { server: nats.server(), tell: &|_| () };
    let (_, report) = run(&plan, &queue).unwrap();
    let told = json::report(&report);
    assert!(told.contains("raise its max_payload"), "{told}");
    assert_eq!(report.findings.len(), 1, "the other one has a race");
    assert_eq!(exit_status(&report), 1);
}

/// Makes a queue that of another version, perhaps with a job.
fn describe(nats: &Nats, version: &str, has_job: bool) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = async_nats::connect(nats.url()).await.unwrap();
        let context = async_nats::jetstream::new(client);
        let stream = context.get_stream("foresee_jobs").await.unwrap();
        let mut config = stream.cached_info().config.clone();
        config.description = Some(version.to_owned());
        context.update_stream(config).await.unwrap();
        if has_job {
            let job = context.publish("foresee.jobs.9_9_9", "a job of another version".into());
            job.await.unwrap().await.unwrap();
        }
    });
}

#[test]
fn a_worker_notices_that_another_version_has_taken_its_queue_over() {
    let folder = tempfile::tempdir().unwrap();
    let nats = Nats::start(&[]);
    let worker = Worker { idle: None, ..of_this_process(nats.server(), folder.path()) };
    std::thread::scope(|scope| {
        let working = scope.spawn(|| work(&worker, &AtomicBool::new(false), &|_| ()));
        assert_eq!(run_by_others(&nats, folder.path()), 1);
        describe(&nats, "foresee 9.9.9", false);
        let error = working.join().unwrap().unwrap_err().to_string();
        assert!(error.contains("is used by foresee 9.9.9, and this is foresee 0."), "{error}");
    });
}

#[test]
fn a_queue_that_someone_removes_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let nats = Nats::start(&[]);
    let plan = plan(folder.path(), &names(60));
    let expected = json::report(&run(&plan, &InProcess { cores: 1 }).unwrap().1);
    let _worker = WorkerProcess::start(&nats.url());
    let remove = |handed_over: usize| {
        if handed_over == 5 {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let client = async_nats::connect(nats.url()).await.unwrap();
                let context = async_nats::jetstream::new(client);
                context.delete_stream("foresee_jobs").await.unwrap();
            });
        }
    };
    let server = Server { patience: Duration::from_secs(120), ..nats.server() };
    let queue = NatsQueue { server, tell: &|_| () };
    // The runtime of the batch must not be entered twice.
    let remove = |handed_over| {
        std::thread::scope(|scope| scope.spawn(|| remove(handed_over)).join().unwrap());
    };
    let (handed_over, report) = run_and(&plan, &queue, &remove).unwrap();
    assert_eq!(handed_over, 60);
    assert!(json::report(&report) == expected, "{}", json::report(&report));
}

/// Has a batch of one job done by whoever is there; the number of jobs.
fn run_by_others(nats: &Nats, folder: &std::path::Path) -> usize {
    let queue = NatsQueue { server: nats.server(), tell: &|_| () };
    run(&plan(folder, &names(1)), &queue).unwrap().0
}

#[test]
fn another_version_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let nats = Nats::start(&[]);
    assert!(worker(nats.server(), folder.path()).is_ok());
    describe(&nats, "foresee 9.9.9", true);
    for (who, error) in everyone(&impatient(nats.server()), folder.path()) {
        let error = error.unwrap();
        assert!(
            error.contains("is used by foresee 9.9.9, and this is foresee 0."),
            "{who}: {error}"
        );
        let remedy = "use the same version, or another queue with --queue-name";
        assert!(error.contains(remedy), "{who}: {error}");
    }
    let other = Server { queue: "other".parse().unwrap(), ..nats.server() };
    for (who, error) in everyone(&other, folder.path()) {
        assert_eq!(error, None, "{who}");
    }
}

#[test]
fn a_server_without_jetstream_is_named() {
    let folder = tempfile::tempdir().unwrap();
    // Nobody may use JetStream in this account.
    let none = Nats::configured("accounts: { A: { users: [ { user: a, password: b } ] } }\n");
    let server = Server { auth: Auth::User("a".into(), "b".into()), ..impatient(none.server()) };
    for (who, error) in everyone(&server, folder.path()) {
        let error = error.unwrap();
        assert!(error.starts_with("cannot open the queue"), "{who}: {error}");
    }
}

#[test]
fn a_secure_connection_needs_a_certificate_that_is_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let openssl = |words: &str| {
        let mut command = std::process::Command::new("openssl");
        command.current_dir(folder.path()).args(words.split_whitespace());
        let output = command.output().expect("apt-get install openssl");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    std::fs::write(file("san"), "subjectAltName=IP:127.0.0.1,DNS:localhost\n").unwrap();
    for name in ["ca", "other"] {
        openssl(&format!(
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN={name} \
             -keyout {name}.key -out {name}.pem"
        ));
    }
    openssl(
        "req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=localhost -keyout server.key \
         -out server.csr",
    );
    openssl(
        "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile san \
         -out server.pem",
    );
    let nats = Nats::configured(&format!(
        "tls: {{ cert_file: {:?}, key_file: {:?} }}\n",
        file("server.pem"),
        file("server.key")
    ));
    let with = |ca: &str| Server {
        tls: Tls { required: true, ca: Some(file(ca)), own: None },
        ..impatient(nats.server())
    };
    assert_eq!(worker(with("ca.pem"), folder.path()).err(), None);
    let error = worker(with("other.pem"), folder.path()).unwrap_err();
    assert!(error.contains("no secure connection") && error.contains("--nats-ca"), "{error}");
    let error = worker(with("server.key"), folder.path()).unwrap_err();
    assert!(error.ends_with("server.key has no certificate in PEM"), "{error}");
    let error = worker(with("missing.pem"), folder.path()).unwrap_err();
    assert!(error.starts_with("cannot read"), "{error}");
    // A server may want to know who comes, too.
    openssl(
        "req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=worker -keyout own.key -out own.csr",
    );
    // A certificate without extensions is of a version that is not accepted.
    std::fs::write(file("client"), "extendedKeyUsage=clientAuth\n").unwrap();
    openssl(
        "x509 -req -in own.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile client \
         -out own.pem",
    );
    let strict = Nats::configured(&format!(
        "tls: {{ cert_file: {:?}, key_file: {:?}, ca_file: {:?}, verify: true }}\n",
        file("server.pem"),
        file("server.key"),
        file("ca.pem")
    ));
    let with = |own| Server {
        tls: Tls { required: true, ca: Some(file("ca.pem")), own },
        ..impatient(strict.server())
    };
    let own = Some((file("own.pem"), file("own.key")));
    assert_eq!(worker(with(own), folder.path()).err(), None);
    let error = worker(with(None), folder.path()).unwrap_err();
    assert!(error.contains("no secure connection") && error.contains("--nats-cert"), "{error}");
    let plain = Nats::start(&[]);
    let with = Server { tls: with(None).tls, ..impatient(plain.server()) };
    let error = worker(with, folder.path()).unwrap_err();
    assert!(error.contains("the server does not use TLS"), "{error}");
}
