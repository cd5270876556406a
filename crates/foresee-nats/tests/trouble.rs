//! What goes wrong with a server is said clearly, and soon enough.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use foresee_batch::perform;
use foresee_nats::{Auth, NatsQueue, Server, Tls, Worker, work};
use foresee_report::{exit_status, json};

use crate::fleet::run;
use crate::harness::{Nats, WorkerProcess, names, plan, server};

/// Does everything that is there, and ends.
pub(crate) fn worker(
    server: Server,
    folder: &std::path::Path,
) -> Result<foresee_nats::Worked, String> {
    let worker = Worker {
        server,
        jobs: 2,
        folder: folder.join("cache"),
        most_bytes: 1 << 20,
        idle: Some(Duration::from_millis(1500)),
        perform: Arc::new(|job, blobs| perform(job, blobs, 1)),
        served: Vec::new(),
    };
    work(&worker, &AtomicBool::new(false), &|_| ()).map_err(|error| error.to_string())
}

pub(crate) fn impatient(server: Server) -> Server {
    Server { patience: Duration::from_millis(1500), ..server }
}

#[test]
fn an_unreachable_server_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(folder.path(), &names(1));
    let nowhere = impatient(server("nats://127.0.0.1:9"));
    let queue = NatsQueue { server: nowhere.clone(), tell: &|_| () };
    let error = run(&plan, &queue).unwrap_err().to_string();
    assert!(error.starts_with("cannot reach nats://127.0.0.1:9"), "{error}");
    let error = worker(nowhere, folder.path()).unwrap_err();
    assert!(error.starts_with("cannot reach nats://127.0.0.1:9"), "{error}");
    let error = worker(server("http://x"), folder.path()).unwrap_err();
    assert!(error.contains("is not the address of a NATS server"), "{error}");
}

#[test]
fn credentials_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    let nats = Nats::start(&["--user", "me", "--pass", "secret"]);
    let with = |auth| Server { auth, ..impatient(nats.server()) };
    for wrong in [Auth::None, Auth::User("me".into(), "wrong".into()), Auth::Token("x".into())] {
        let error = worker(with(wrong), folder.path()).unwrap_err();
        assert!(error.contains("refuses these credentials"), "{error}");
    }
    let right = with(Auth::User("me".into(), "secret".into()));
    assert!(worker(right, folder.path()).is_ok());
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
    let right = Server { auth: Auth::Nkey(seed), ..impatient(nats.server()) };
    assert!(worker(right, folder.path()).is_ok());
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

#[test]
fn another_version_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let nats = Nats::start(&[]);
    assert!(worker(nats.server(), folder.path()).is_ok());
    let described = |text: &str| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let client = async_nats::connect(nats.url()).await.unwrap();
            let context = async_nats::jetstream::new(client);
            let stream = context.get_stream("foresee_jobs").await.unwrap();
            let mut config = stream.cached_info().config.clone();
            config.description = Some(text.to_owned());
            context.update_stream(config).await.unwrap();
            let subject = "foresee.jobs.9_9_9";
            context
                .publish(subject, "a job of another version".into())
                .await
                .unwrap()
                .await
                .unwrap();
        });
    };
    described("foresee 9.9.9");
    let plan = plan(folder.path(), &names(1));
    let queue = NatsQueue { server: nats.server(), tell: &|_| () };
    let error = run(&plan, &queue).unwrap_err().to_string();
    assert!(error.contains("is used by foresee 9.9.9, and this is foresee 0."), "{error}");
    let error = worker(nats.server(), folder.path()).unwrap_err();
    assert!(error.contains("use the same version, or another queue with --queue-name"), "{error}");
    let other = Server { queue: "other".parse().unwrap(), ..nats.server() };
    assert!(worker(other, folder.path()).is_ok());
}

#[test]
fn a_server_without_jetstream_is_named() {
    let folder = tempfile::tempdir().unwrap();
    // Nobody may use JetStream in this account.
    let none = Nats::configured("accounts: { A: { users: [ { user: a, password: b } ] } }\n");
    let server = Server { auth: Auth::User("a".into(), "b".into()), ..impatient(none.server()) };
    let error = worker(server, folder.path()).unwrap_err();
    assert!(error.starts_with("cannot open the queue"), "{error}");
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
    assert!(error.contains("certificate") || error.contains("secure"), "{error}");
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
    assert!(worker(with(None), folder.path()).is_err());
}
