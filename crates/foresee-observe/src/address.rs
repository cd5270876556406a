//! Addresses of observers: TCP or, on Unix, a socket in the file system.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::path::PathBuf;
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
            Address::Unix(path) => {
                use std::os::unix::fs::{FileTypeExt, PermissionsExt};
                // A socket file that a dead observer left behind; a live one accepts connections.
                let is_socket = path.metadata().is_ok_and(|file| file.file_type().is_socket());
                if is_socket && UnixStream::connect(path).is_err() {
                    std::fs::remove_file(path)?;
                }
                let listener = UnixListener::bind(path)?;
                // No other user of this machine may connect.
                std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
                Ok(Listener::Unix(listener, path.clone()))
            }
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
}
