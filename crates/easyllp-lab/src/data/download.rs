//! Download published files: a file appears under its name only after it was checked.
//!
//! Servers are untrusted: the response is checked against the known size and checksum, and no more
//! bytes are stored than the file has.

use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;
use thiserror::Error;
use ureq::http::{Response, Uri};
use ureq::{Agent, Body, Timeout};

/// The maximum number of requests to one mirror; each continues where the last one stopped.
const ATTEMPTS: usize = 3;
/// The maximum number of redirects per address.
const REDIRECTS: usize = 5;

/// A published file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Published<'a> {
    /// Its name, at the publisher and in the folder.
    pub(super) name: &'a str,
    /// Its size.
    pub(super) bytes: u64,
    /// Its SHA-256, in lower case. None for an archive without a known checksum; its members have
    /// one.
    pub(super) sha256: Option<&'a str>,
    /// Mirrors: addresses to which the name is appended, in the order of attempts.
    pub(super) mirrors: &'a [&'a str],
}

/// The source of files.
#[derive(Debug, Clone)]
pub enum Origin {
    /// The publishers' mirrors.
    Mirrors,
    /// A folder with copies.
    Folder(PathBuf),
    /// An address to which the name of the file is appended.
    Address(String),
}

/// Why a file could not be downloaded.
#[derive(Debug, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message of a variant is its documentation, and names its fields")]
pub enum DownloadError {
    #[error(
        "cannot download {name}{}\ntry again later, or give a folder that holds a copy of it with --from",
        lines(failures)
    )]
    NotDownloaded { name: String, failures: Vec<MirrorFailure> },
    #[error("cannot take {path}: {reason}; the folder given with --from must hold it as it was published")]
    BadCopy { path: PathBuf, reason: String },
    #[error("{path} is not the archive that was published: {reason}; delete it and download it again")]
    BadArchive { path: PathBuf, reason: String },
    #[error("{path} is being written by another process: wait until it is done, then try again")]
    Busy { path: PathBuf },
    #[error("interrupted after {done} of the {bytes} bytes of {name}: the next attempt goes on from there")]
    Interrupted { name: String, done: u64, bytes: u64 },
    #[error(transparent)]
    File(#[from] easyllp::Error),
}

/// A failed attempt at one mirror.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MirrorFailure {
    /// The address.
    pub address: String,
    /// The reason.
    pub reason: String,
}

/// One line per failure, each starting with a line break.
fn lines(failures: &[MirrorFailure]) -> String {
    let line = |failure: &MirrorFailure| format!("\n  {}: {}", failure.address, failure.reason);
    failures.iter().map(line).collect::<Vec<_>>().concat()
}

/// A callback with the bytes that are there and the total; it may cancel.
pub(super) type Watch<'w> = &'w mut dyn FnMut(u64, u64) -> ControlFlow<()>;

/// Downloads the file into the folder and checks it. A complete file is kept.
///
/// `watch` is called at the start and after each block of bytes. If it cancels, the next call
/// continues from there. It is not called while a server is silent.
pub(super) fn fetch(
    file: &Published,
    folder: &Path,
    origin: &Origin,
    watch: Watch,
) -> Result<PathBuf, DownloadError> {
    let limits = Limits { silence: Duration::from_secs(30), pause: Duration::from_secs(1) };
    fetch_within(limits, file, folder, origin, watch)
}

fn fetch_within(
    limits: Limits,
    file: &Published,
    folder: &Path,
    origin: &Origin,
    watch: Watch,
) -> Result<PathBuf, DownloadError> {
    let path = folder.join(file.name);
    if File::open(&path).and_then(|mut opened| fault(file, &mut opened)).is_ok_and(|fault| fault.is_none()) {
        return Ok(path);
    }
    fs::create_dir_all(folder).map_err(|error| cannot_write(folder, error))?;
    let mut part = Part::open(file, folder, watch)?;
    let filled = match origin {
        Origin::Mirrors => download(limits, &mut part, file.mirrors),
        Origin::Address(address) => download(limits, &mut part, &[address]),
        Origin::Folder(copies) => copy(&mut part, &copies.join(file.name)),
    };
    let placed = filled.and_then(|()| {
        let renamed = part.opened.sync_all().and_then(|()| fs::rename(&part.path, &path));
        renamed.map_err(|error| cannot_write(&path, error))
    });
    if placed.is_err() && part.length == 0 {
        // Nothing to go on from. If it cannot be removed, it does no harm.
        let _ = fs::remove_file(&part.path);
    }
    placed.map(|()| path)
}

/// Why a file is not the published one; none if it is.
fn fault(file: &Published, opened: &mut File) -> io::Result<Option<String>> {
    let bytes = opened.metadata()?.len();
    if bytes != file.bytes {
        return Ok(Some(format!("it has {bytes} bytes instead of {}", file.bytes)));
    }
    let Some(expected) = file.sha256 else { return Ok(None) };
    opened.rewind()?;
    let found = sha256(opened)?;
    Ok((found != expected).then(|| format!("its SHA-256 is {found} instead of {expected}")))
}

/// The SHA-256 of everything that can be read, in hex.
pub(super) fn sha256(reader: &mut impl Read) -> io::Result<String> {
    let (mut hasher, mut buffer) = (Sha256::new(), vec![0; 1 << 16]);
    loop {
        let n_bytes = reader.read(&mut buffer)?;
        if n_bytes == 0 {
            break;
        }
        hasher.update(&buffer[..n_bytes]);
    }
    Ok(hasher.finalize().iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes all that is written to it");
        text
    }))
}

pub(super) fn cannot_write(path: &Path, error: io::Error) -> DownloadError {
    easyllp::Error::CannotWrite { path: path.into(), source: error.into() }.into()
}

/// A partial download, under a temporary name next to the final one.
struct Part<'a> {
    file: &'a Published<'a>,
    watch: Watch<'a>,
    path: PathBuf,
    opened: File,
    length: u64,
    /// Whether some of it came from another mirror.
    mixed: bool,
}

impl<'a> Part<'a> {
    /// Opens an earlier partial download, or creates a new one.
    fn open(file: &'a Published<'a>, folder: &Path, watch: Watch<'a>) -> Result<Self, DownloadError> {
        let path = folder.join(format!("{}.part", file.name));
        loop {
            let opened = OpenOptions::new().read(true).append(true).create(true).open(&path);
            let opened = opened.map_err(|error| cannot_write(&path, error))?;
            // Not every file system has locks; the checksum tells if two processes mixed their bytes.
            if matches!(opened.try_lock(), Err(TryLockError::WouldBlock)) {
                return Err(DownloadError::Busy { path });
            }
            // Between opening and locking, the process that had it may have given it its name.
            if path.exists() {
                let length = opened.metadata().map_err(|error| cannot_write(&path, error))?.len();
                return Ok(Self { file, watch, path, opened, length, mixed: false });
            }
        }
    }

    fn clear(&mut self) -> Result<(), DownloadError> {
        self.opened.set_len(0).map_err(|error| cannot_write(&self.path, error))?;
        (self.length, self.mixed) = (0, false);
        Ok(())
    }

    /// Appends a response, which must have exactly the missing bytes.
    fn fill(&mut self, source: &mut dyn Read) -> Result<(), Failed> {
        let bytes = self.file.bytes;
        let mut buffer = vec![0; 1 << 16];
        let end = loop {
            if (self.watch)(self.length, bytes).is_break() {
                let name = self.file.name.into();
                return Err(DownloadError::Interrupted { name, done: self.length, bytes }.into());
            }
            match source.read(&mut buffer) {
                Ok(0) => break "it ends".into(),
                Ok(n_bytes) if n_bytes as u64 > bytes - self.length => {
                    self.clear()?;
                    return Err(Failed::Mirror(format!("it has more than {bytes} bytes")));
                }
                Ok(n_bytes) => {
                    let written = self.opened.write_all(&buffer[..n_bytes]);
                    written.map_err(|error| cannot_write(&self.path, error))?;
                    self.length += n_bytes as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break reason(error.into()),
            }
        };
        // Once all of it is there, it does not matter how the end came.
        if self.length < bytes {
            return Err(Failed::Attempt(format!("{end} after {} of {bytes} bytes", self.length)));
        }
        Ok(())
    }

    /// Checks the complete file. If the check fails, the partial download is deleted.
    fn check(&mut self) -> Result<(), Failed> {
        let fault = fault(self.file, &mut self.opened).map_err(|error| cannot_write(&self.path, error))?;
        let Some(reason) = fault else { return Ok(()) };
        // The mirror is not to blame for what it did not send.
        let failed = if self.mixed { Failed::Attempt(reason) } else { Failed::Mirror(reason) };
        self.clear()?;
        Err(failed)
    }
}

/// Why an attempt failed.
enum Failed {
    /// Retry the same mirror.
    Attempt(String),
    /// Try the next mirror.
    Mirror(String),
    /// Give up: no mirror can help.
    Fetch(DownloadError),
}

impl From<DownloadError> for Failed {
    fn from(error: DownloadError) -> Self {
        Self::Fetch(error)
    }
}

/// Timeouts: for the next bytes, and before a mirror is tried again.
#[derive(Clone, Copy)]
struct Limits {
    silence: Duration,
    pause: Duration,
}

/// Downloads from the first mirror that has the file.
fn download(limits: Limits, part: &mut Part, mirrors: &[&str]) -> Result<(), DownloadError> {
    let (to_connect, silence) = (Some(limits.silence / 3), Some(limits.silence));
    let agent = Agent::config_builder()
        .user_agent(concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION")))
        .http_status_as_error(false)
        // Followed here: ureq would read the body of a redirect, however long, and panics at some that are broken.
        .max_redirects(0)
        // An attempt never depends on what is left of the one before.
        .max_idle_connections(0)
        .timeout_resolve(to_connect)
        .timeout_connect(to_connect)
        .timeout_recv_response(silence)
        .timeout_per_read(silence)
        .timeout_per_write(silence)
        .build()
        .new_agent();
    let mut failures = Vec::new();
    for mirror in mirrors {
        let address = format!("{}/{}", mirror.trim_end_matches('/'), part.file.name);
        part.mixed = part.length > 0;
        for n_failed in 0..ATTEMPTS {
            if n_failed > 0 {
                std::thread::sleep(limits.pause);
            }
            let (reason, is_last) = match attempt(&agent, &address, part) {
                Ok(()) => return Ok(()),
                Err(Failed::Attempt(reason)) => (reason, false),
                Err(Failed::Mirror(reason)) => (reason, true),
                Err(Failed::Fetch(error)) => return Err(error),
            };
            failures.push(MirrorFailure { address: address.clone(), reason });
            if is_last {
                break;
            }
        }
    }
    Err(DownloadError::NotDownloaded { name: part.file.name.into(), failures })
}

/// Requests the missing bytes, and checks the complete file.
fn attempt(agent: &Agent, address: &str, part: &mut Part) -> Result<(), Failed> {
    let bytes = part.file.bytes;
    // An earlier call may have ended between the last byte and the check. A part that is too long fails the check.
    if part.length >= bytes {
        return part.check();
    }
    let response = request(agent, address, part.length).map_err(Failed::Mirror)?;
    match response.status().as_u16() {
        200 => {
            if let Some(offered) = response.body().content_length().filter(|&offered| offered != bytes) {
                return Err(Failed::Mirror(format!("it has {offered} bytes instead of {bytes}")));
            }
            part.clear()?;
        }
        206 if goes_on(&response, part) => {}
        206 | 416 if part.length > 0 => {
            let reason = format!("it does not go on from byte {}", part.length);
            part.clear()?;
            return Err(Failed::Attempt(reason));
        }
        status => return Err(Failed::Mirror(format!("HTTP status {status}"))),
    }
    part.fill(&mut response.into_body().into_reader())?;
    part.check()
}

/// Requests a file from this byte on, and follows redirects.
fn request(agent: &Agent, address: &str, from: u64) -> Result<Response<Body>, String> {
    let mut address = address.to_owned();
    for _ in 0..=REDIRECTS {
        // Packed on the way, it would be other bytes than those that were published.
        let mut request = agent.get(&address).header("Accept-Encoding", "identity");
        if from > 0 {
            request = request.header("Range", format!("bytes={from}-"));
        }
        let response = request.call().map_err(reason)?;
        if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
            return Ok(response);
        }
        let location = response.headers().get("Location").and_then(|location| location.to_str().ok());
        let next = location.and_then(|location| redirected(&address, location));
        address = next.ok_or("it redirects to nowhere")?;
    }
    Err(format!("it redirects more than {REDIRECTS} times"))
}

/// The address of a redirect, which may be relative.
fn redirected(from: &str, location: &str) -> Option<String> {
    let from: Uri = from.parse().ok()?;
    let (scheme, authority) = (from.scheme()?, from.authority()?);
    Some(if location.starts_with("//") {
        format!("{scheme}:{location}")
    } else if location.starts_with('/') {
        format!("{scheme}://{authority}{location}")
    } else if location.contains("://") {
        location.to_owned()
    } else {
        format!("{scheme}://{authority}{}/{location}", from.path().rsplit_once('/')?.0)
    })
}

/// Whether a partial response has the header `bytes first-last/all` with the first missing byte and
/// the right total, which may be unknown.
fn goes_on(response: &Response<Body>, part: &Part) -> bool {
    let range = response.headers().get("Content-Range").and_then(|range| range.to_str().ok());
    range
        .and_then(|range| range.strip_prefix(&format!("bytes {}-", part.length)))
        .is_some_and(|rest| rest.ends_with("/*") || rest.ends_with(&format!("/{}", part.file.bytes)))
}

/// The cause of an error, to be shown after its address.
fn reason(error: ureq::Error) -> String {
    match error {
        ureq::Error::Timeout(Timeout::Resolve | Timeout::Connect) => "it cannot be reached in time".into(),
        ureq::Error::Timeout(_) => "it falls silent".into(),
        ureq::Error::Io(error) => error.to_string(),
        error => error.to_string(),
    }
}

/// Copies from a folder, with the same checks as for a download.
fn copy(part: &mut Part, from: &Path) -> Result<(), DownloadError> {
    let bad = |reason| DownloadError::BadCopy { path: from.into(), reason };
    let mut opened = File::open(from).map_err(|error| bad(error.to_string()))?;
    part.clear()?;
    part.fill(&mut opened).and_then(|()| part.check()).or_else(|failed| match failed {
        Failed::Fetch(error) => Err(error),
        Failed::Attempt(reason) | Failed::Mirror(reason) => {
            part.clear()?;
            Err(bad(reason))
        }
    })
}

#[cfg(test)]
mod tests;
