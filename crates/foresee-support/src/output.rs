//! Files that people ask for: they appear under their name only when they are whole.
//!
//! A regular file is replaced in one step and keeps its mode. What is not a regular file (a device, a FIFO, a socket)
//! and what is reached by a symbolic link is written through: it stays what it is and receives the content, all of it
//! and only after everything before has succeeded.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

const BUFFER: usize = 128 << 10;

/// A file being written. Dropped before [`OutputFile::finish`], it leaves everything as it was.
#[derive(Debug)]
pub struct OutputFile {
    place: Place,
    path: PathBuf,
}

#[derive(Debug)]
enum Place {
    /// Grows beside its final place, as renaming works only inside one file system.
    Beside(BufWriter<NamedTempFile>),
    /// Grows out of sight and is copied to what is at the path, which has been opened if it is a regular file.
    Through(BufWriter<File>, Option<File>),
}

impl OutputFile {
    /// Starts a file. Fails if it is clear already that it cannot be finished.
    pub fn create(path: &Path) -> io::Result<OutputFile> {
        let existing = match fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            metadata => Some(metadata?),
        };
        let place = match &existing {
            Some(it) if it.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Some(it) if !it.is_file() => Place::through(path)?,
            _ => Place::beside(path, existing.as_ref())?,
        };
        Ok(OutputFile { place, path: path.to_owned() })
    }

    /// Lets the file appear.
    pub fn finish(self) -> io::Result<()> {
        match self.place {
            Place::Beside(file) => {
                let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
                file.persist(&self.path).map(drop).map_err(|error| error.error)
            }
            Place::Through(file, opened) => {
                let mut file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
                file.rewind()?;
                match opened {
                    Some(mut target) => {
                        target.set_len(0)?;
                        io::copy(&mut file, &mut target)?;
                    }
                    None => copy_to(&mut file, &self.path)?,
                }
                Ok(())
            }
        }
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.place {
            Place::Beside(file) => file.write(bytes),
            Place::Through(file, _) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.place {
            Place::Beside(file) => file.flush(),
            Place::Through(file, _) => file.flush(),
        }
    }
}

impl Seek for OutputFile {
    fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
        match &mut self.place {
            Place::Beside(file) => file.seek(to),
            Place::Through(file, _) => file.seek(to),
        }
    }
}

/// Writes a whole file.
pub fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = OutputFile::create(path)?;
    file.write_all(content)?;
    file.finish()
}

/// The folder of a file.
pub fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

impl Place {
    fn beside(path: &Path, existing: Option<&fs::Metadata>) -> io::Result<Place> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(".foresee-").suffix(".part");
        // Temporary files are private by default; this one should be as readable as others.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        // The messages of the builder would name the temporary file.
        fs::metadata(folder(path))?;
        let file =
            builder.tempfile_in(folder(path)).map_err(|error| io::Error::from(error.kind()))?;
        if let Some(existing) = existing {
            #[cfg(unix)]
            keep_owner(file.as_file(), existing);
            file.as_file().set_permissions(existing.permissions())?;
        }
        Ok(Place::Beside(BufWriter::with_capacity(BUFFER, file)))
    }

    fn through(path: &Path) -> io::Result<Place> {
        let opened = match fs::metadata(path) {
            Ok(target) if target.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(target) if target.is_file() => Some(OpenOptions::new().write(true).open(path)?),
            _ => None,
        };
        Ok(Place::Through(BufWriter::with_capacity(BUFFER, tempfile::tempfile()?), opened))
    }
}

/// Gives a file the owner of the one that it replaces, if that is allowed.
#[cfg(unix)]
fn keep_owner(file: &File, existing: &fs::Metadata) {
    use std::os::unix::fs::{MetadataExt, fchown};
    let of = |metadata: &fs::Metadata| (metadata.uid(), metadata.gid());
    if file.metadata().is_ok_and(|new| of(&new) != of(existing)) {
        // Only root may; for others the file becomes theirs, as any file that they write.
        let _ = fchown(file, Some(existing.uid()), Some(existing.gid()));
    }
}

/// Copies to a device, a FIFO, a socket, or a file that a link to nowhere names.
fn copy_to(from: &mut File, path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::{fs::FileTypeExt, net::UnixStream};
        if fs::metadata(path).is_ok_and(|target| target.file_type().is_socket()) {
            let mut target = UnixStream::connect(path)?;
            return io::copy(from, &mut target).map(drop);
        }
    }
    let mut target = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
    io::copy(from, &mut target)?;
    target.flush()
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::io::Read;
    use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
    use std::os::unix::net::UnixListener;
    use std::process::Command;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_replaced_in_one_step_and_keeps_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        fs::write(&path, "old").unwrap();
        for kept in [0o600, 0o640, 0o755] {
            // The number of a file that is still open is not given to another one.
            let replaced = File::open(&path).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(kept)).unwrap();
            let mut file = OutputFile::create(&path).unwrap();
            file.write_all(&[b'x'; 3 * BUFFER]).unwrap();
            let before = fs::read(&path).unwrap();
            assert!(before == b"old" || before == [b'x'; 3 * BUFFER], "half-written");
            file.finish().unwrap();
            assert_eq!(fs::read(&path).unwrap(), [b'x'; 3 * BUFFER]);
            assert_eq!(mode(&path), kept);
            let inode = replaced.metadata().unwrap().ino();
            assert_ne!(fs::metadata(&path).unwrap().ino(), inode);
        }
        assert_eq!(names(folder.path()), ["out"]);
    }

    #[test]
    fn a_new_file_is_as_readable_as_others() {
        let folder = tempfile::tempdir().unwrap();
        let (ours, other) = (folder.path().join("ours"), folder.path().join("other"));
        write(&ours, b"content").unwrap();
        fs::write(&other, "content").unwrap();
        assert_eq!(fs::read(&ours).unwrap(), b"content");
        assert_eq!(mode(&ours), mode(&other));
    }

    #[test]
    fn what_is_not_finished_leaves_everything_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("out"), folder.path().join("link"));
        fs::write(&path, "old").unwrap();
        symlink("out", &link).unwrap();
        for target in [&path, &link, &folder.path().join("new")] {
            let mut file = OutputFile::create(target).unwrap();
            file.write_all(&[b'x'; 3 * BUFFER]).unwrap();
            file.flush().unwrap();
            drop(file);
            assert_eq!(fs::read(&path).unwrap(), b"old");
        }
        assert_eq!(names(folder.path()), ["link", "out"]);
    }

    #[test]
    fn a_link_stays_a_link_and_its_target_gets_the_content() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("out"), folder.path().join("link"));
        fs::write(&path, "old and longer").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let inode = fs::metadata(&path).unwrap().ino();
        symlink("out", &link).unwrap();
        let (far, nowhere) = (folder.path().join("far"), folder.path().join("nowhere"));
        symlink("link", &far).unwrap();
        symlink("made", &nowhere).unwrap();
        for (link, target) in [(&link, "out"), (&far, "out"), (&nowhere, "made")] {
            write(link, b"new").unwrap();
            assert!(fs::symlink_metadata(link).unwrap().is_symlink());
            assert_eq!(fs::read(folder.path().join(target)).unwrap(), b"new");
        }
        assert_eq!((mode(&path), fs::metadata(&path).unwrap().ino()), (0o640, inode));
        assert_eq!(names(folder.path()), ["far", "link", "made", "nowhere", "out"]);
    }

    #[test]
    fn a_fifo_and_a_socket_stay_and_get_the_content() {
        let folder = tempfile::tempdir().unwrap();
        let (fifo, socket) = (folder.path().join("fifo"), folder.path().join("socket"));
        let link = folder.path().join("link");
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        symlink("fifo", &link).unwrap();
        let content = vec![b'x'; 3 * BUFFER];
        for path in [&fifo, &link] {
            let reader = fifo.clone();
            let reading = std::thread::spawn(move || fs::read(reader).unwrap());
            write(path, &content).unwrap();
            assert_eq!(reading.join().unwrap(), content);
            assert!(fs::symlink_metadata(&fifo).unwrap().file_type().is_fifo());
        }
        let listener = UnixListener::bind(&socket).unwrap();
        let reading = std::thread::spawn(move || {
            let (mut stream, mut bytes) = (listener.accept().unwrap().0, Vec::new());
            stream.read_to_end(&mut bytes).unwrap();
            bytes
        });
        write(&socket, &content).unwrap();
        assert_eq!(reading.join().unwrap(), content);
        assert!(fs::symlink_metadata(&socket).unwrap().file_type().is_socket());
    }

    #[test]
    fn what_cannot_be_written_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        symlink(folder.path(), folder.path().join("link")).unwrap();
        let kind = |path: &Path| OutputFile::create(path).unwrap_err().kind();
        assert_eq!(kind(folder.path()), io::ErrorKind::IsADirectory);
        assert_eq!(kind(&folder.path().join("link")), io::ErrorKind::IsADirectory);
        assert_eq!(kind(&folder.path().join("no/where")), io::ErrorKind::NotFound);
    }
}
