//! Addresses of observers: TCP or, on Unix, a socket in the file system.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

#[cfg(unix)]
use std::os::unix::net::{UnixListener, UnixStream};

/// An address to listen on or to send to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// `HOST:PORT`.
    Tcp(SocketAddr),
    /// `unix:PATH`.
    Unix(PathBuf),
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            return match path {
                "" => Err("`unix:` needs the path of a socket behind it".to_owned()),
                _ if cfg!(unix) => Ok(Address::Unix(path.into())),
                _ => Err("this system does not support Unix sockets".to_owned()),
            };
        }
        let found = text.to_socket_addrs().map(|mut all| all.next());
        match found {
            Ok(Some(address)) => Ok(Address::Tcp(address)),
            Ok(None) => Err(format!("`{text}` does not resolve to an address")),
            Err(error) => Err(format!("{error}; write HOST:PORT or unix:PATH")),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => write!(f, "{address}"),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl Address {
    /// Whether only this machine can reach it.
    pub fn is_local(&self) -> bool {
        match self {
            Address::Tcp(address) => address.ip().is_loopback(),
            Address::Unix(_) => true,
        }
    }

    /// Connects to it.
    pub fn connect(&self) -> io::Result<Stream> {
        match self {
            Address::Tcp(address) => {
                let stream = TcpStream::connect_timeout(address, Duration::from_secs(10))?;
                // Frames are written in one piece; waiting for more would only delay them.
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }
            #[cfg(unix)]
            Address::Unix(path) => Ok(Stream::Unix(UnixStream::connect(path)?)),
            #[cfg(not(unix))]
            Address::Unix(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

/// A listening socket.
#[derive(Debug)]
pub(crate) enum Listener {
    Tcp(TcpListener),
    #[cfg(unix)]
    Unix(UnixListener, PathBuf),
}

impl Listener {
    pub(crate) fn bind(address: &Address) -> io::Result<Listener> {
        match address {
            Address::Tcp(address) => Ok(Listener::Tcp(TcpListener::bind(address)?)),
            #[cfg(unix)]
            Address::Unix(path) => Ok(Listener::Unix(bind_privately(path)?, path.clone())),
            #[cfg(not(unix))]
            Address::Unix(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// The address; a port of 0 is replaced by the actual one.
    pub(crate) fn address(&self) -> io::Result<Address> {
        match self {
            Listener::Tcp(listener) => Ok(Address::Tcp(listener.local_addr()?)),
            #[cfg(unix)]
            Listener::Unix(_, path) => Ok(Address::Unix(path.clone())),
        }
    }

    /// The next connection, and the name of its peer.
    pub(crate) fn accept(&self) -> io::Result<(Stream, String)> {
        match self {
            Listener::Tcp(listener) => {
                let (stream, peer) = listener.accept()?;
                stream.set_nodelay(true)?;
                Ok((Stream::Tcp(stream), peer.to_string()))
            }
            #[cfg(unix)]
            Listener::Unix(listener, _) => {
                let (stream, _) = listener.accept()?;
                Ok((Stream::Unix(stream), "a local process".to_owned()))
            }
        }
    }
}

/// Listens on a socket to which no other user of this machine can connect at any moment: it gets its
/// mode in a folder that only this user can enter, and its name after that.
#[cfg(unix)]
fn bind_privately(path: &Path) -> io::Result<UnixListener> {
    use std::fs::Permissions;
    use std::os::unix::fs::{FileTypeExt, PermissionsExt};
    // A socket file that a dead observer left behind; a live one accepts connections.
    let is_socket = path.metadata().is_ok_and(|file| file.file_type().is_socket());
    if is_socket && UnixStream::connect(path).is_err() {
        std::fs::remove_file(path)?;
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    // The names are short, because addresses of sockets are.
    let private = tempfile::Builder::new()
        .prefix(".")
        .permissions(Permissions::from_mode(0o700))
        .tempdir_in(folder.unwrap_or(Path::new(".")))?;
    let unnamed = private.path().join("s");
    let listener = UnixListener::bind(&unnamed)?;
    std::fs::set_permissions(&unnamed, Permissions::from_mode(0o600))?;
    // Unlike renaming, this replaces nothing that has come into being by now.
    std::fs::hard_link(&unnamed, path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => io::ErrorKind::AddrInUse.into(),
        _ => error,
    })?;
    Ok(listener)
}

#[cfg(unix)]
impl Drop for Listener {
    fn drop(&mut self) {
        if let Listener::Unix(_, path) = self {
            // It was created here, and nothing listens on it any more.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// A connection.
#[derive(Debug)]
pub enum Stream {
    /// Over TCP.
    Tcp(TcpStream),
    /// Over a socket in the file system.
    #[cfg(unix)]
    Unix(UnixStream),
}

macro_rules! either {
    ($stream:expr, $inner:ident => $do:expr) => {
        match $stream {
            Stream::Tcp($inner) => $do,
            #[cfg(unix)]
            Stream::Unix($inner) => $do,
        }
    };
}

impl Stream {
    /// Sets the timeout of reads.
    pub fn set_read_timeout(&self, time: Option<Duration>) -> io::Result<()> {
        either!(self, stream => stream.set_read_timeout(time))
    }

    /// Sets the timeout of writes.
    pub fn set_write_timeout(&self, time: Option<Duration>) -> io::Result<()> {
        either!(self, stream => stream.set_write_timeout(time))
    }

    /// Shuts down the writing side.
    pub fn finish_writing(&self) -> io::Result<()> {
        either!(self, stream => stream.shutdown(Shutdown::Write))
    }
}

impl Read for &Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        either!(self, stream => (&mut &*stream).read(buffer))
    }
}

impl Write for &Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        either!(self, stream => (&mut &*stream).write(bytes))
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let tcp: Address = "127.0.0.1:7777".parse().unwrap();
        assert!(tcp.is_local() && tcp.to_string() == "127.0.0.1:7777");
        assert!(!"0.0.0.0:1".parse::<Address>().unwrap().is_local());
        assert!("[::1]:80".parse::<Address>().unwrap().is_local());
        assert_eq!("unix:/tmp/s".parse(), Ok(Address::Unix("/tmp/s".into())));
        for bad in ["", "7777", "unix:", "127.0.0.1"] {
            assert!(bad.parse::<Address>().is_err(), "{bad}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_socket_is_private_replaces_only_dead_ones_and_leaves_nothing_behind() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let names = || std::fs::read_dir(folder.path()).unwrap().count();
        // A dead observer's.
        drop(UnixListener::bind(&path).unwrap());
        let address = Address::Unix(path.clone());
        let listener = Listener::bind(&address).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert!(address.connect().is_ok() && names() == 1);
        assert_eq!(Listener::bind(&address).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        drop(listener);
        assert_eq!(names(), 0);
        std::fs::write(&path, "not a socket").unwrap();
        assert_eq!(Listener::bind(&address).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        assert_eq!(std::fs::read(&path).unwrap(), b"not a socket");
        assert_eq!(names(), 1);
    }
}
