//! Servers as they should be, and as they are.

mod server;

use super::*;
use server::{Reply, Server, beginning, not_found, redirect, response, rest, whole};
use tempfile::TempDir;

/// Longer than any test takes, so that only a test that waits for silence ever sees one of these end.
const PATIENT: Limits =
    Limits { connect: Duration::from_mins(1), silence: Duration::from_mins(1), pause: Duration::ZERO };

/// A file to fetch and a folder to fetch it into.
struct Case {
    folder: TempDir,
    body: Vec<u8>,
    sha256: Option<String>,
}

impl Case {
    fn new(body: &[u8]) -> Self {
        let sum = sha256(&mut &body[..]).unwrap();
        Self { folder: tempfile::tempdir().unwrap(), body: body.into(), sha256: Some(sum) }
    }

    fn fetch_with(
        &self,
        limits: Limits,
        mirrors: &[&Server],
        origin: &Origin,
        watch: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
    ) -> Result<PathBuf, DownloadError> {
        let mirrors: Vec<&str> = mirrors.iter().map(|server| &server.address[..]).collect();
        let file = Published {
            name: "file.gz",
            bytes: self.body.len() as u64,
            sha256: self.sha256.as_deref(),
            mirrors: &mirrors,
        };
        fetch_within(limits, &file, &self.folder.path().join("data"), origin, watch)
    }

    fn fetch(&self, mirrors: &[&Server]) -> Result<PathBuf, DownloadError> {
        self.fetch_with(PATIENT, mirrors, &Origin::Mirrors, &mut |_, _| ControlFlow::Continue(()))
    }

    fn copy(&self, from: &Path) -> Result<PathBuf, DownloadError> {
        let origin = Origin::Folder(from.into());
        self.fetch_with(PATIENT, &[], &origin, &mut |_, _| ControlFlow::Continue(()))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("data").join(name)
    }

    /// Puts down what an earlier call could have left.
    fn leave(&self, name: &str, bytes: &[u8]) {
        fs::create_dir_all(self.folder.path().join("data")).unwrap();
        fs::write(self.path(name), bytes).unwrap();
    }

    /// The names in the folder, sorted.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path().join("data")).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Checks that the file has come, and nothing else.
    #[track_caller]
    fn assert_fetched(&self, result: Result<PathBuf, DownloadError>) {
        assert_eq!(result.unwrap(), self.path("file.gz"));
        assert_eq!(fs::read(self.path("file.gz")).unwrap(), self.body);
        assert_eq!(self.names(), ["file.gz"]);
    }

    /// Checks that nothing has come, and that the reasons given for it contain these.
    #[track_caller]
    fn assert_failed(&self, result: Result<PathBuf, DownloadError>, expected: &[&str]) {
        let reasons = reasons(result);
        assert_eq!(reasons.len(), expected.len(), "{reasons:?}");
        for (reason, expected) in reasons.iter().zip(expected) {
            assert!(reason.contains(expected), "{reason} should contain {expected}");
        }
        assert_eq!(self.names(), [""; 0]);
    }
}

#[track_caller]
fn reasons(result: Result<PathBuf, DownloadError>) -> Vec<String> {
    match result {
        Err(DownloadError::NotDownloaded { failures, .. }) => {
            failures.into_iter().map(|failure| failure.reason).collect()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_whole_body() {
    let case = Case::new(b"0123456789");
    let server = Server::start(vec![whole(&case.body)]);
    let mut seen = Vec::new();
    let result = case.fetch_with(PATIENT, &[&server], &Origin::Mirrors, &mut |done, all| {
        seen.push((done, all));
        ControlFlow::Continue(())
    });
    case.assert_fetched(result);
    assert_eq!(seen, [(0, 10), (10, 10)]);
    assert_eq!(server.requests(), ["/file.gz"]);
}

#[test]
fn bodies_without_a_length_end_with_the_connection_or_the_last_chunk() {
    let case = Case::new(b"0123456789");
    let chunked =
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n0123\r\n6\r\n456789\r\n0\r\n\r\n";
    for reply in [&b"HTTP/1.0 200 OK\r\n\r\n0123456789"[..], chunked] {
        let server = Server::start(vec![Reply::Send(reply.into())]);
        case.assert_fetched(case.fetch(&[&server]));
        assert_eq!(server.requests(), ["/file.gz"]);
        fs::remove_file(case.path("file.gz")).unwrap();
    }
}

#[test]
fn what_is_there_and_right_is_left_alone() {
    let case = Case::new(b"0123456789");
    case.leave("file.gz", b"0123456789");
    let server = Server::start(vec![]);
    case.assert_fetched(case.fetch(&[&server]));
    assert_eq!(server.requests(), [""; 0]);
}

#[test]
fn what_is_there_and_wrong_is_replaced() {
    for wrong in [&b"012345678X"[..], b"0123"] {
        let case = Case::new(b"0123456789");
        case.leave("file.gz", wrong);
        let server = Server::start(vec![whole(&case.body)]);
        case.assert_fetched(case.fetch(&[&server]));
        assert_eq!(server.requests(), ["/file.gz"]);
    }
}

#[test]
fn what_is_there_stays_until_something_better_comes() {
    let case = Case::new(b"0123456789");
    case.leave("file.gz", b"wrong");
    let server = Server::start(vec![not_found()]);
    assert_eq!(reasons(case.fetch(&[&server])), ["HTTP status 404"]);
    assert_eq!(fs::read(case.path("file.gz")).unwrap(), b"wrong");
    assert_eq!(case.names(), ["file.gz"]);
}

#[test]
fn a_truncated_body_is_resumed() {
    let case = Case::new(b"0123456789");
    let server = Server::start(vec![
        Reply::Send(beginning(&case.body, 4)),
        Reply::Send(response("206 Partial Content", "Content-Range: bytes 4-6/*\r\n", b"456")),
        rest(&case.body, 7),
    ]);
    case.assert_fetched(case.fetch(&[&server]));
    assert_eq!(server.requests(), ["/file.gz", "/file.gz bytes=4-", "/file.gz bytes=7-"]);
}

#[test]
fn a_mirror_that_never_gets_far_is_left_for_the_next_which_goes_on() {
    let case = Case::new(b"0123456789");
    let nothing = || Reply::Send(response("206 Partial Content", "Content-Range: bytes 4-9/10\r\n", b""));
    let first = Server::start(vec![Reply::Send(beginning(&case.body, 4)), nothing(), nothing()]);
    let second = Server::start(vec![rest(&case.body, 4)]);
    case.assert_fetched(case.fetch(&[&first, &second]));
    assert_eq!(first.requests(), ["/file.gz", "/file.gz bytes=4-", "/file.gz bytes=4-"]);
    assert_eq!(second.requests(), ["/file.gz bytes=4-"]);
}

#[test]
fn what_came_of_a_file_is_kept_when_all_mirrors_fail() {
    let case = Case::new(b"0123456789");
    let server = Server::start(vec![Reply::Send(beginning(&case.body, 4)), Reply::Send(vec![])]);
    let expected = ["Peer disconnected after 4 of 10 bytes", "Peer disconnected"];
    assert_eq!(reasons(case.fetch(&[&server])), expected);
    assert_eq!(server.requests(), ["/file.gz", "/file.gz bytes=4-"]);
    assert_eq!(case.names(), ["file.gz.part"]);

    let server = Server::start(vec![rest(&case.body, 4)]);
    case.assert_fetched(case.fetch(&[&server]));
    assert_eq!(server.requests(), ["/file.gz bytes=4-"]);
}

#[test]
fn a_part_that_is_whole_needs_no_request() {
    let case = Case::new(b"0123456789");
    case.leave("file.gz.part", b"0123456789");
    let server = Server::start(vec![]);
    case.assert_fetched(case.fetch(&[&server]));
    assert_eq!(server.requests(), [""; 0]);
}

#[test]
fn a_part_that_cannot_be_right_is_begun_anew() {
    for part in [&b"012345678X"[..], b"0123456789 and more"] {
        let case = Case::new(b"0123456789");
        case.leave("file.gz.part", part);
        let server = Server::start(vec![whole(&case.body)]);
        case.assert_fetched(case.fetch(&[&server]));
        assert_eq!(server.requests(), ["/file.gz"]);
    }
}

#[test]
fn a_wrong_checksum_leads_to_the_next_mirror() {
    let case = Case::new(b"0123456789");
    let first = Server::start(vec![whole(b"012345678X")]);
    let second = Server::start(vec![whole(&case.body)]);
    case.assert_fetched(case.fetch(&[&first, &second]));
    assert_eq!(first.requests(), ["/file.gz"]);
    assert_eq!(second.requests(), ["/file.gz"]);
}

#[test]
fn a_wrong_checksum_leaves_nothing() {
    let case = Case::new(b"0123456789");
    let server = Server::start(vec![whole(b"012345678X")]);
    let sum = case.sha256.clone().unwrap();
    case.assert_failed(case.fetch(&[&server]), &[&format!(" instead of {sum}")]);
    assert_eq!(server.requests(), ["/file.gz"]);
}

#[test]
fn a_mirror_is_not_blamed_for_the_bytes_of_another() {
    let case = Case::new(b"0123456789");
    let first = Server::start(vec![
        Reply::Send(beginning(b"XXXX456789", 4)),
        Reply::Send(vec![]),
        Reply::Send(vec![]),
    ]);
    let second = Server::start(vec![rest(&case.body, 4), whole(&case.body)]);
    case.assert_fetched(case.fetch(&[&first, &second]));
    assert_eq!(first.requests(), ["/file.gz", "/file.gz bytes=4-"]);
    assert_eq!(second.requests(), ["/file.gz bytes=4-", "/file.gz"]);
}

#[test]
fn without_a_checksum_the_size_decides() {
    let case = Case { sha256: None, ..Case::new(b"0123456789") };
    let first = Server::start(vec![whole(b"012345678")]);
    let second = Server::start(vec![whole(&case.body)]);
    case.assert_fetched(case.fetch(&[&first, &second]));
    assert_eq!(first.requests(), ["/file.gz"]);
    assert_eq!(second.requests(), ["/file.gz"]);
    case.assert_fetched(case.fetch(&[]));
}

#[test]
fn an_http_error_leads_to_the_next_mirror() {
    let case = Case::new(b"0123456789");
    let first = Server::start(vec![not_found()]);
    let second = Server::start(vec![whole(&case.body)]);
    case.assert_fetched(case.fetch(&[&first, &second]));
    assert_eq!(first.requests(), ["/file.gz"]);
    assert_eq!(second.requests(), ["/file.gz"]);
}

#[test]
fn the_error_lists_what_was_tried_and_what_can_be_done() {
    let case = Case::new(b"0123456789");
    let first = Server::start(vec![not_found()]);
    let second = Server::start(vec![Reply::Send(response("503 Busy", "", b""))]);
    let message = case.fetch(&[&first, &second]).unwrap_err().to_string();
    let expected = format!(
        "cannot download file.gz\n  {}/file.gz: HTTP status 404\n  {}/file.gz: HTTP status 503\n\
         try again later, or give a folder that holds a copy of it with --from",
        first.address, second.address
    );
    assert_eq!(message, expected);
    assert_eq!(case.names(), [""; 0]);
    assert_eq!(first.requests(), ["/file.gz"]);
    assert_eq!(second.requests(), ["/file.gz"]);
}

#[test]
fn a_server_that_is_not_there_leads_to_the_next_mirror() {
    let case = Case::new(b"0123456789");
    // Nobody listens at port 1, and no other test can come to.
    let server = Server::start(vec![whole(&case.body)]);
    let mirrors = ["http://127.0.0.1:1", "no address", "ftp://127.0.0.1", "", &server.address];
    let file = Published { name: "file.gz", bytes: 10, sha256: case.sha256.as_deref(), mirrors: &mirrors };
    let folder = case.folder.path().join("data");
    let mut watch = |_, _| ControlFlow::Continue(());
    case.assert_fetched(fetch_within(PATIENT, &file, &folder, &Origin::Mirrors, &mut watch));
    assert_eq!(server.requests(), ["/file.gz"]);
}

#[test]
fn a_redirect_is_followed_with_the_range() {
    let case = Case::new(b"0123456789");
    let other = Server::start(vec![rest(&case.body, 4)]);
    let server = Server::start(vec![
        redirect("/moved/to?file=a"),
        Reply::Send(beginning(&case.body, 4)),
        redirect("folder/here"),
        redirect("there"),
        redirect(&format!("{}/elsewhere", other.address.trim_start_matches("http:"))),
    ]);
    case.assert_fetched(case.fetch(&[&server]));
    let expected = [
        "/file.gz",
        "/moved/to?file=a",
        "/file.gz bytes=4-",
        "/folder/here bytes=4-",
        "/folder/there bytes=4-",
    ];
    assert_eq!(server.requests(), expected);
    assert_eq!(other.requests(), ["/elsewhere bytes=4-"]);
}

#[test]
fn redirects_may_name_another_server() {
    let case = Case::new(b"0123456789");
    let other = Server::start(vec![whole(&case.body)]);
    let server = Server::start(vec![redirect(&format!("{}/elsewhere", other.address))]);
    case.assert_fetched(case.fetch(&[&server]));
    assert_eq!(server.requests(), ["/file.gz"]);
    assert_eq!(other.requests(), ["/elsewhere"]);
}

#[test]
fn a_redirect_loop_ends() {
    let case = Case::new(b"0123456789");
    let server = Server::start((0..100).map(|_| redirect("/file.gz")).collect());
    case.assert_failed(case.fetch(&[&server]), &["it redirects more than 5 times"]);
    assert_eq!(server.requests(), ["/file.gz"; 6]);
}

#[test]
fn a_range_that_is_refused_is_begun_anew() {
    let case = Case::new(b"0123456789");
    case.leave("file.gz.part", b"0123");
    let refused = response("416 Range Not Satisfiable", "Content-Range: bytes */10\r\n", b"");
    let server = Server::start(vec![Reply::Send(refused.clone()), whole(&case.body)]);
    case.assert_fetched(case.fetch(&[&server]));
    assert_eq!(server.requests(), ["/file.gz bytes=4-", "/file.gz"]);

    // Where no range was asked for, it is an error as any other.
    let case = Case::new(b"0123456789");
    let server = Server::start(vec![Reply::Send(refused)]);
    case.assert_failed(case.fetch(&[&server]), &["HTTP status 416"]);
    assert_eq!(server.requests(), ["/file.gz"]);
}

#[test]
fn a_range_that_is_ignored_is_begun_anew() {
    let case = Case::new(b"0123456789");
    case.leave("file.gz.part", b"XXXX");
    let server = Server::start(vec![whole(&case.body)]);
    case.assert_fetched(case.fetch(&[&server]));
    assert_eq!(server.requests(), ["/file.gz bytes=4-"]);
}

#[test]
fn a_range_that_was_not_asked_for_is_begun_anew() {
    for range in [
        "",
        "Content-Range: bytes 0-9/10\r\n",
        "Content-Range: bytes 5-9/10\r\n",
        "Content-Range: bytes 4-9/11\r\n",
        "Content-Range: bytes 4-9\r\n",
        "Content-Range: bytes */10\r\n",
        "Content-Range: 4-9/10\r\n",
        "Content-Range: bytes 99999999999999999999-9/10\r\n",
        "Content-Range: bytes vier-9/10\r\n",
    ] {
        let case = Case::new(b"0123456789");
        case.leave("file.gz.part", b"0123");
        let strange = Reply::Send(response("206 Partial Content", range, b"456789"));
        let server = Server::start(vec![strange, whole(&case.body)]);
        case.assert_fetched(case.fetch(&[&server]));
        assert_eq!(server.requests(), ["/file.gz bytes=4-", "/file.gz"], "{range}");
    }
}

#[test]
fn a_body_of_another_length_is_refused_before_it_is_read() {
    for body in [&b"0123456789 and more"[..], b"012345"] {
        let case = Case::new(b"0123456789");
        case.leave("file.gz.part", b"0123");
        let server = Server::start(vec![whole(body)]);
        let expected = format!("it has {} bytes instead of 10", body.len());
        assert_eq!(reasons(case.fetch(&[&server])), [expected]);
        assert_eq!(server.requests(), ["/file.gz bytes=4-"]);
        // Nothing was taken from it, so that what came from elsewhere still counts.
        assert_eq!(fs::read(case.path("file.gz.part")).unwrap(), b"0123");
    }
}

#[test]
fn a_body_that_goes_on_for_ever_is_cut_off() {
    let body = vec![b'x'; 100_000];
    let case = Case::new(&body);
    let server = Server::start(vec![Reply::GoOnForEver(b"HTTP/1.0 200 OK\r\n\r\n".into())]);
    case.assert_failed(case.fetch(&[&server]), &["it has more than 100000 bytes"]);
    assert_eq!(server.requests(), ["/file.gz"]);

    // The same where a range was asked for.
    case.leave("file.gz.part", &body[..99_999]);
    let head = b"HTTP/1.0 206 Partial Content\r\nContent-Range: bytes 99999-99999/100000\r\n\r\n";
    let server = Server::start(vec![Reply::GoOnForEver(head.into())]);
    case.assert_failed(case.fetch(&[&server]), &["it has more than 100000 bytes"]);
    assert_eq!(server.requests(), ["/file.gz bytes=99999-"]);
}

#[test]
fn a_redirect_that_goes_on_for_ever_is_followed() {
    let case = Case::new(b"0123456789");
    let head = b"HTTP/1.0 302 Found\r\nLocation: /there\r\n\r\n";
    let server = Server::start(vec![Reply::GoOnForEver(head.into()), whole(&case.body)]);
    case.assert_fetched(case.fetch(&[&server]));
    assert_eq!(server.requests(), ["/file.gz", "/there"]);
}

#[test]
fn a_silent_server_is_left() {
    let limits = Limits { silence: Duration::from_millis(100), ..PATIENT };
    for silent in [&b""[..], b"HTTP/1.1 200 OK\r\nContent-Le"] {
        let case = Case::new(b"0123456789");
        let server = Server::start(vec![Reply::FallSilent(silent.into())]);
        let mut watch = |_, _| ControlFlow::Continue(());
        let result = case.fetch_with(limits, &[&server], &Origin::Mirrors, &mut watch);
        case.assert_failed(result, &["it falls silent"]);
        assert_eq!(server.requests(), ["/file.gz"]);
    }
}

#[test]
fn a_server_that_falls_silent_is_asked_again() {
    // Long enough for the second reply even on a busy machine.
    let limits = Limits { silence: Duration::from_secs(2), ..PATIENT };
    let case = Case::new(b"0123456789");
    let server = Server::start(vec![Reply::FallSilent(beginning(&case.body, 4)), rest(&case.body, 4)]);
    let mut watch = |_, _| ControlFlow::Continue(());
    case.assert_fetched(case.fetch_with(limits, &[&server], &Origin::Mirrors, &mut watch));
    assert_eq!(server.requests(), ["/file.gz", "/file.gz bytes=4-"]);
}

#[test]
fn an_interrupted_download_is_resumed() {
    let body: Vec<u8> = (0..200_000_u32).map(|place| (place % 251) as u8).collect();
    let case = Case::new(&body);
    let server = Server::start(vec![whole(&body)]);
    let mut watch = |done, _| if done > 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    let error = case.fetch_with(PATIENT, &[&server], &Origin::Mirrors, &mut watch).unwrap_err();
    let part = fs::read(case.path("file.gz.part")).unwrap();
    assert!((1..body.len()).contains(&part.len()) && body.starts_with(&part));
    let expected = format!(
        "interrupted after {} of the 200000 bytes of file.gz: the next attempt goes on from there",
        part.len()
    );
    assert_eq!(error.to_string(), expected);
    assert_eq!(case.names(), ["file.gz.part"]);
    assert_eq!(server.requests(), ["/file.gz"]);

    let server = Server::start(vec![rest(&body, part.len())]);
    let mut seen = Vec::new();
    let result = case.fetch_with(PATIENT, &[&server], &Origin::Mirrors, &mut |done, all| {
        seen.push((done, all));
        ControlFlow::Continue(())
    });
    case.assert_fetched(result);
    assert_eq!(server.requests(), [format!("/file.gz bytes={}-", part.len())]);
    assert!(seen.is_sorted());
    assert_eq!(seen.first(), Some(&(part.len() as u64, 200_000)));
    assert_eq!(seen.last(), Some(&(200_000, 200_000)));
}

#[test]
fn interrupted_before_the_first_byte_nothing_is_left() {
    let case = Case::new(b"0123456789");
    let server = Server::start(vec![whole(&case.body)]);
    let mut watch = |_, _| ControlFlow::Break(());
    let error = case.fetch_with(PATIENT, &[&server], &Origin::Mirrors, &mut watch).unwrap_err();
    assert!(matches!(error, DownloadError::Interrupted { done: 0, bytes: 10, .. }), "{error:?}");
    assert_eq!(case.names(), [""; 0]);
    assert_eq!(server.requests(), ["/file.gz"]);
}

#[test]
fn an_address_takes_the_place_of_the_mirrors() {
    for slash in ["", "/"] {
        let case = Case::new(b"0123456789");
        let mirror = Server::start(vec![]);
        let server = Server::start(vec![whole(&case.body)]);
        let origin = Origin::Address(format!("{}/copies{slash}", server.address));
        let mut watch = |_, _| ControlFlow::Continue(());
        case.assert_fetched(case.fetch_with(PATIENT, &[&mirror], &origin, &mut watch));
        assert_eq!(server.requests(), ["/copies/file.gz"]);
        assert_eq!(mirror.requests(), [""; 0]);
    }
}

#[test]
fn a_copy_takes_the_place_of_a_download() {
    let case = Case::new(b"0123456789");
    let copies = tempfile::tempdir().unwrap();
    fs::write(copies.path().join("file.gz"), &case.body).unwrap();
    // What a download has left is of no use to it.
    case.leave("file.gz.part", b"XXXX");
    case.assert_fetched(case.copy(copies.path()));
    assert_eq!(fs::read(copies.path().join("file.gz")).unwrap(), case.body);
}

#[test]
fn a_wrong_copy_is_refused() {
    let sum = sha256(&mut &b"0123456789"[..]).unwrap();
    for (copy, reason) in [
        (&b"012345678X"[..], format!(" instead of {sum}")),
        (b"0123", "it ends after 4 of 10 bytes".into()),
        (b"0123456789 and more", "it has more than 10 bytes".into()),
    ] {
        let case = Case::new(b"0123456789");
        let copies = tempfile::tempdir().unwrap();
        let path = copies.path().join("file.gz");
        fs::write(&path, copy).unwrap();
        let message = case.copy(copies.path()).unwrap_err().to_string();
        assert!(message.starts_with(&format!("cannot take {}: ", path.display())), "{message}");
        assert!(message.contains(&reason), "{message}");
        assert!(
            message.ends_with("the folder given with --from must hold it as it was published"),
            "{message}"
        );
        assert_eq!(case.names(), [""; 0]);
    }
}

#[test]
fn a_copy_that_is_not_there_costs_nothing() {
    let case = Case::new(b"0123456789");
    case.leave("file.gz.part", b"0123");
    let copies = tempfile::tempdir().unwrap();
    let error = case.copy(copies.path()).unwrap_err();
    assert!(matches!(error, DownloadError::BadCopy { .. }), "{error:?}");
    assert_eq!(fs::read(case.path("file.gz.part")).unwrap(), b"0123");
    // The folder itself is no copy of what should be in it.
    case.leave("file.gz", b"wrong");
    let error = case.copy(&case.folder.path().join("data")).unwrap_err();
    assert!(matches!(error, DownloadError::BadCopy { .. }), "{error:?}");
    assert_eq!(case.names(), ["file.gz"]);
}

#[test]
fn two_at_a_time_do_not_mix() {
    let case = Case::new(b"0123456789");
    let folder = case.folder.path().join("data");
    fs::create_dir(&folder).unwrap();
    let file = Published { name: "file.gz", bytes: 10, sha256: None, mirrors: &[] };
    let mut part = Part::open(&file, &folder).map_err(|error| error.to_string()).unwrap();
    part.append(b"0123").unwrap();
    let message = case.fetch(&[]).unwrap_err().to_string();
    let path = case.path("file.gz.part");
    assert!(
        message.starts_with(&format!("{} is being written by another process", path.display())),
        "{message}"
    );
    assert_eq!(fs::read(path).unwrap(), b"0123");
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let case = Case::new(b"0123456789");
    let server = Server::start(vec![]);
    fs::write(case.folder.path().join("data"), "a file").unwrap();
    let message = case.fetch(&[&server]).unwrap_err().to_string();
    let start = format!("cannot write {}: ", case.folder.path().join("data").display());
    assert!(message.starts_with(&start), "{message}");
    assert_eq!(server.requests(), [""; 0]);
}

#[test]
fn hostile_replies_are_refused() {
    let many_headers = format!("HTTP/1.1 200 OK\r\n{}\r\n", "A: b\r\n".repeat(10_000));
    let long_header = format!("HTTP/1.1 200 OK\r\nA: {}\r\n\r\n", "b".repeat(1_000_000));
    let replies: [&[u8]; 28] = [
        b"",
        b"\0",
        b"\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.9\r\n",
        b"HTTP/1.1 200",
        b"HTTP/1.1 999 What\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n0123456789",
        b"HTTP/1.1 204 No Content\r\n\r\n0123456789",
        b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 5-9/10\r\nContent-Length: 5\r\n\r\n56789",
        b"HTTP/1.1 300 Multiple Choices\r\nContent-Length: 2\r\n\r\nhi",
        b"HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\nhi",
        // This one makes ureq panic where it follows redirects itself.
        b"HTTP/1.1 302 Found\r\nLocation: /there\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
        b"HTTP/1.1 302 Found\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nLocation:\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: \xff\xfe\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: http://\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: http://[::1\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: //:0:0:0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n0123456789",
        b"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551616\r\n\r\n0123456789",
        b"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\n0123456789",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffffff\r\n0123456789",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffe\r\n0123456789 and more",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n0123456789",
        many_headers.as_bytes(),
        long_header.as_bytes(),
    ];
    for reply in replies {
        let case = Case::new(b"0123456789");
        let server = Server::start(vec![Reply::Send(reply.into())]);
        let beginning = String::from_utf8_lossy(&reply[..reply.len().min(80)]);
        let failed = reasons(case.fetch(&[&server]));
        assert!(!failed.is_empty(), "{beginning}");
        assert!(server.requests().len() <= ATTEMPTS, "{beginning}");
        assert_eq!(case.names(), [""; 0], "{beginning}: {failed:?}");
    }
}
