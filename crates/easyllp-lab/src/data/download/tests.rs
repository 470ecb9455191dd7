//! Servers as they should be, and as they are.

mod server;

use super::*;
use server::{Reply, Server, beginning, not_found, redirect, response, rest, whole};
use tempfile::TempDir;

/// Longer than any test takes, so that only a test that waits for silence ever sees one of these end.
const PATIENT: Limits = Limits { silence: Duration::from_mins(3), pause: Duration::ZERO };

/// What is published.
const BODY: &[u8] = b"0123456789";

type Fetched = Result<PathBuf, DownloadError>;

/// A folder to fetch a file into.
struct Case {
    folder: TempDir,
    body: Vec<u8>,
}

impl Case {
    /// A folder with what an earlier call could have left in it.
    fn new(body: &[u8], left: &[(&str, &[u8])]) -> Self {
        let case = Self { folder: tempfile::tempdir().unwrap(), body: body.into() };
        fs::create_dir(case.path("")).unwrap();
        for (name, bytes) in left {
            fs::write(case.path(name), bytes).unwrap();
        }
        case
    }

    fn fetch_with(&self, limits: Limits, mirrors: &[&str], origin: &Origin, watch: Watch) -> Fetched {
        let sum = sha256(&mut &self.body[..]).unwrap();
        let bytes = self.body.len() as u64;
        let file = Published { name: "file.gz", bytes, sha256: Some(&sum), mirrors };
        fetch_within(limits, &file, &self.path(""), origin, watch)
    }

    fn fetch(&self, limits: Limits, mirrors: &[&str]) -> Fetched {
        self.fetch_with(limits, mirrors, &Origin::Mirrors, &mut |_, _| ControlFlow::Continue(()))
    }

    fn copy(&self, from: &Path) -> Fetched {
        let origin = Origin::Folder(from.into());
        self.fetch_with(PATIENT, &[], &origin, &mut |_, _| ControlFlow::Continue(()))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("data").join(name)
    }

    /// Names and bytes of the files in the folder, sorted.
    fn files(&self) -> Vec<(String, Vec<u8>)> {
        let entries = fs::read_dir(self.path("")).unwrap().map(Result::unwrap);
        let mut files: Vec<_> = entries
            .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
            .collect();
        files.sort();
        files
    }

    #[track_caller]
    fn assert_left(&self, expected: &[(&str, &[u8])], what: &str) {
        let expected: Vec<_> =
            expected.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec())).collect();
        assert_eq!(self.files(), expected, "{what}");
    }

    /// Checks that the file has come, and nothing else.
    #[track_caller]
    fn assert_fetched(&self, result: Fetched, what: &str) {
        assert_eq!(result.map_err(|error| format!("{what}: {error}")), Ok(self.path("file.gz")));
        self.assert_left(&[("file.gz", &self.body)], what);
    }
}

#[track_caller]
fn reasons(result: Fetched) -> Vec<String> {
    match result {
        Err(DownloadError::NotDownloaded { failures, .. }) => {
            failures.into_iter().map(|failure| failure.reason).collect()
        }
        other => panic!("{other:?}"),
    }
}

/// Fetches from mirrors that give these replies to these requests, and compares the reasons of those that fail. Without any the
/// file has come; otherwise `after` is left.
#[track_caller]
fn check(
    what: &str,
    before: &[(&str, &[u8])],
    mirrors: Vec<(Vec<Reply>, &[&str])>,
    expected: &[&str],
    after: &[(&str, &[u8])],
) {
    let case = Case::new(BODY, before);
    let (replies, requests): (Vec<_>, Vec<_>) = mirrors.into_iter().unzip();
    let servers: Vec<Server> = replies.into_iter().map(Server::start).collect();
    let addresses: Vec<&str> = servers.iter().map(|server| &server.address[..]).collect();
    let result = case.fetch(PATIENT, &addresses);
    if expected.is_empty() {
        case.assert_fetched(result, what);
    } else {
        let found = reasons(result);
        assert_eq!(found.len(), expected.len(), "{what}: {found:?}");
        assert!(found.iter().zip(expected).all(|(found, part)| found.contains(part)), "{what}: {found:?}");
        case.assert_left(after, what);
    }
    for (server, requests) in servers.into_iter().zip(requests) {
        assert_eq!(server.requests(), requests, "{what}");
    }
}

const ASKED: &[&str] = &["/file.gz"];
const ASKED_FOR_REST: &[&str] = &["/file.gz bytes=4-"];
const ASKED_AGAIN: &[&str] = &["/file.gz bytes=4-", "/file.gz"];

fn good() -> Reply {
    whole(BODY)
}

fn cut_off() -> Reply {
    Reply::Send(beginning(BODY, 4))
}

fn partial(range: &str, body: &[u8]) -> Reply {
    Reply::Send(response("206 Partial Content", range, body))
}

#[test]
fn a_file_comes_whole_or_not_at_all() {
    let chunked =
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n0123\r\n6\r\n456789\r\n0\r\n\r\n";
    for (what, reply) in [
        ("a length", good()),
        ("the end of the connection", Reply::Send(b"HTTP/1.0 200 OK\r\n\r\n0123456789".into())),
        ("the last chunk", Reply::Send(chunked.into())),
    ] {
        check(what, &[], vec![(vec![reply], ASKED)], &[], &[]);
    }
    check("there and right", &[("file.gz", BODY)], vec![(vec![], &[])], &[], &[]);
    for wrong in [&b"012345678X"[..], b"0123"] {
        check("there and wrong", &[("file.gz", wrong)], vec![(vec![good()], ASKED)], &[], &[]);
    }
    let wrong: &[(&str, &[u8])] = &[("file.gz", b"wrong")];
    check("wrong stays", wrong, vec![(vec![not_found()], ASKED)], &["HTTP status 404"], wrong);
    check("an HTTP error", &[], vec![(vec![not_found()], ASKED), (vec![good()], ASKED)], &[], &[]);
    let other = || vec![whole(b"012345678X")];
    check("another sum", &[], vec![(other(), ASKED), (vec![good()], ASKED)], &[], &[]);
    let sum = format!(" instead of {}", sha256(&mut &BODY[..]).unwrap());
    check("another sum, and no mirror", &[], vec![(other(), ASKED)], &[&sum], &[]);
    let elsewhere = (0..100).map(|_| redirect("/file.gz")).collect();
    check("a loop", &[], vec![(elsewhere, &["/file.gz"; 6])], &["it redirects more than 5 times"], &[]);
}

#[test]
fn what_has_come_is_gone_on_from() {
    let part: &[(&str, &[u8])] = &[("file.gz.part", b"0123")];
    check("a part", part, vec![(vec![rest(BODY, 4)], ASKED_FOR_REST)], &[], &[]);
    check("a whole part", &[("file.gz.part", BODY)], vec![(vec![], &[])], &[], &[]);
    for wrong in [&b"012345678X"[..], b"0123456789 and more"] {
        check("a wrong part", &[("file.gz.part", wrong)], vec![(vec![good()], ASKED)], &[], &[]);
    }
    let some = partial("Content-Range: bytes 4-6/*\r\n", b"456");
    let requests = &["/file.gz", "/file.gz bytes=4-", "/file.gz bytes=7-"];
    check("cut off twice", &[], vec![(vec![cut_off(), some, rest(BODY, 7)], requests)], &[], &[]);
    let nothing = || partial("Content-Range: bytes 4-9/10\r\n", b"");
    let requests = &["/file.gz", "/file.gz bytes=4-", "/file.gz bytes=4-"];
    let first = (vec![cut_off(), nothing(), nothing()], &requests[..]);
    check("another mirror goes on", &[], vec![first, (vec![rest(BODY, 4)], ASKED_FOR_REST)], &[], &[]);
    let fails = vec![cut_off(), Reply::Send(vec![])];
    let expected = &["Peer disconnected after 4 of 10 bytes", "Peer disconnected"];
    check("kept for the next call", &[], vec![(fails, &requests[..2])], expected, part);
    // The second mirror is not blamed for the bytes of the first.
    let first = vec![Reply::Send(beginning(b"XXXX456789", 4)), Reply::Send(vec![]), Reply::Send(vec![])];
    let second = (vec![rest(BODY, 4), good()], ASKED_AGAIN);
    check("mixed", &[], vec![(first, &["/file.gz", "/file.gz bytes=4-"]), second], &[], &[]);

    let refused = || Reply::Send(response("416 Range Not Satisfiable", "Content-Range: bytes */10\r\n", b""));
    check("a range refused", part, vec![(vec![refused(), good()], ASKED_AGAIN)], &[], &[]);
    check("none was asked for", &[], vec![(vec![refused()], ASKED)], &["HTTP status 416"], &[]);
    let wrong: &[(&str, &[u8])] = &[("file.gz.part", b"XXXX")];
    check("a range ignored", wrong, vec![(vec![good()], ASKED_FOR_REST)], &[], &[]);
    for range in [
        "",
        "bytes 0-9/10",
        "bytes 5-9/10",
        "bytes 4-9/11",
        "bytes 4-9",
        "bytes */10",
        "4-9/10",
        "bytes vier-9/10",
    ] {
        let header = if range.is_empty() { String::new() } else { format!("Content-Range: {range}\r\n") };
        let replies = vec![partial(&header, b"456789"), good()];
        check(range, part, vec![(replies, ASKED_AGAIN)], &[], &[]);
    }
    // Nothing is taken of a body of another length, so that what came from elsewhere still counts.
    for body in [&b"0123456789 and more"[..], b"012345"] {
        let expected = format!("it has {} bytes instead of 10", body.len());
        check("another length", part, vec![(vec![whole(body)], ASKED_FOR_REST)], &[&expected], part);
    }
}

#[test]
fn redirects_are_followed_with_the_range() {
    let case = Case::new(BODY, &[]);
    let other = Server::start(vec![rest(BODY, 4)]);
    let endless = b"HTTP/1.0 302 Found\r\nLocation: /moved/to?file=a\r\n\r\n";
    let server = Server::start(vec![
        Reply::GoOnForEver(endless.into()),
        cut_off(),
        redirect("folder/here"),
        redirect("there"),
        redirect(&format!("{}/elsewhere", other.address)),
    ]);
    case.assert_fetched(case.fetch(PATIENT, &[&server.address]), "redirects");
    let expected = [
        "/file.gz",
        "/moved/to?file=a",
        "/file.gz bytes=4-",
        "/folder/here bytes=4-",
        "/folder/there bytes=4-",
    ];
    assert_eq!(server.requests(), expected);
    assert_eq!(other.requests(), ["/elsewhere bytes=4-"]);
    let to = |location: &str| redirected("http://a:1/in/file?x=y", location);
    assert_eq!(to("//b/c").as_deref(), Some("http://b/c"));
    assert_eq!(to("/c?d=http://e").as_deref(), Some("http://a:1/c?d=http://e"));
}

#[test]
fn the_error_lists_what_was_tried_and_what_can_be_done() {
    let case = Case::new(BODY, &[]);
    let server = Server::start(vec![not_found()]);
    // Nobody listens at port 1, and no other test can come to.
    let mirrors = ["http://127.0.0.1:1", "no address", "ftp://127.0.0.1", "", &server.address];
    let message = case.fetch(PATIENT, &mirrors).unwrap_err().to_string();
    assert!(message.starts_with("cannot download file.gz\n  http://127.0.0.1:1/file.gz: "), "{message}");
    let end = format!(
        "\n  {}/file.gz: HTTP status 404\ntry again later, or give a folder that holds a copy of it with --from",
        server.address
    );
    assert!(message.ends_with(&end), "{message}");
    case.assert_left(&[], "nothing came");
    assert_eq!(server.requests(), ASKED);
}

#[test]
fn a_body_that_goes_on_for_ever_is_cut_off() {
    let body = vec![b'x'; 100_000];
    let range: &[u8] = b"HTTP/1.0 206 Partial Content\r\nContent-Range: bytes 99999-99999/100000\r\n\r\n";
    for (head, left) in
        [(&b"HTTP/1.0 200 OK\r\n\r\n"[..], &[][..]), (range, &[("file.gz.part", &body[..99_999])])]
    {
        let case = Case::new(&body, left);
        let server = Server::start(vec![Reply::GoOnForEver(head.into())]);
        assert_eq!(reasons(case.fetch(PATIENT, &[&server.address])), ["it has more than 100000 bytes"]);
        assert_eq!(server.requests().len(), 1);
        case.assert_left(&[], "none of it counts");
    }
}

#[test]
fn a_silent_server_is_left_or_asked_again() {
    for silent in [&b""[..], b"HTTP/1.1 200 OK\r\nContent-Le"] {
        let case = Case::new(BODY, &[]);
        let server = Server::start(vec![Reply::FallSilent(silent.into())]);
        let limits = Limits { silence: Duration::from_millis(300), ..PATIENT };
        assert_eq!(reasons(case.fetch(limits, &[&server.address])), ["it falls silent"]);
        case.assert_left(&[], "nothing came");
        assert_eq!(server.requests(), ASKED);
    }
    // Long enough for the second reply even on a busy machine.
    let limits = Limits { silence: Duration::from_secs(6), ..PATIENT };
    let case = Case::new(BODY, &[]);
    let server = Server::start(vec![Reply::FallSilent(beginning(BODY, 4)), rest(BODY, 4)]);
    case.assert_fetched(case.fetch(limits, &[&server.address]), "asked again");
    assert_eq!(server.requests(), ["/file.gz", "/file.gz bytes=4-"]);
}

#[test]
fn an_interrupted_download_is_resumed() {
    let body: Vec<u8> = (0..200_000_u32).map(|place| (place % 251) as u8).collect();
    let case = Case::new(&body, &[]);
    // Before the first byte: nothing is left.
    let server = Server::start(vec![whole(&body), whole(&body)]);
    let mut at_once = |_, _| ControlFlow::Break(());
    let error = case.fetch_with(PATIENT, &[&server.address], &Origin::Mirrors, &mut at_once).unwrap_err();
    assert!(matches!(error, DownloadError::Interrupted { done: 0, bytes: 200_000, .. }), "{error:?}");
    case.assert_left(&[], "nothing came");
    let mut later = |done, _| if done > 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    let error = case.fetch_with(PATIENT, &[&server.address], &Origin::Mirrors, &mut later).unwrap_err();
    let part = fs::read(case.path("file.gz.part")).unwrap();
    assert!((1..body.len()).contains(&part.len()) && body.starts_with(&part));
    let n_bytes = part.len();
    let expected = format!(
        "interrupted after {n_bytes} of the 200000 bytes of file.gz: the next attempt goes on from there"
    );
    assert_eq!(error.to_string(), expected);
    case.assert_left(&[("file.gz.part", &part)], "the part stays");
    assert_eq!(server.requests(), ["/file.gz"; 2]);

    let server = Server::start(vec![rest(&body, n_bytes)]);
    let mut seen = Vec::new();
    let result = case.fetch_with(PATIENT, &[&server.address], &Origin::Mirrors, &mut |done, all| {
        seen.push((done, all));
        ControlFlow::Continue(())
    });
    case.assert_fetched(result, "resumed");
    assert_eq!(server.requests(), [format!("/file.gz bytes={n_bytes}-")]);
    assert!(seen.is_sorted());
    assert_eq!(seen.first(), Some(&(n_bytes as u64, 200_000)));
    assert_eq!(seen.last(), Some(&(200_000, 200_000)));
}

#[test]
fn an_address_takes_the_place_of_the_mirrors() {
    for slash in ["", "/"] {
        let case = Case::new(BODY, &[]);
        let [mirror, server] = [vec![], vec![good()]].map(Server::start);
        let origin = Origin::Address(format!("{}/copies{slash}", server.address));
        let mut watch = |_, _| ControlFlow::Continue(());
        case.assert_fetched(case.fetch_with(PATIENT, &[&mirror.address], &origin, &mut watch), slash);
        assert_eq!(server.requests(), ["/copies/file.gz"]);
        assert_eq!(mirror.requests(), [""; 0]);
    }
}

#[test]
fn a_copy_takes_the_place_of_a_download() {
    let sum = format!(" instead of {}", sha256(&mut &BODY[..]).unwrap());
    // A part that a download has left is of no use to a copy, and stays where there is none.
    let left: &[(&str, &[u8])] = &[("file.gz.part", b"XXXX")];
    let cases: [(Option<&[u8]>, Option<&str>); 5] = [
        (Some(BODY), None),
        (Some(b"012345678X"), Some(&sum)),
        (Some(b"0123"), Some("it ends after 4 of 10 bytes")),
        (Some(b"0123456789 and more"), Some("it has more than 10 bytes")),
        (None, Some("No such file")),
    ];
    for (copy, expected) in cases {
        let (case, copies) = (Case::new(BODY, left), tempfile::tempdir().unwrap());
        let path = copies.path().join("file.gz");
        if let Some(bytes) = copy {
            fs::write(&path, bytes).unwrap();
        }
        let Some(reason) = expected else {
            case.assert_fetched(case.copy(copies.path()), "a copy");
            assert_eq!(fs::read(path).unwrap(), BODY);
            continue;
        };
        let message = case.copy(copies.path()).unwrap_err().to_string();
        assert!(message.starts_with(&format!("cannot take {}: ", path.display())), "{message}");
        assert!(message.contains(reason), "{message}");
        assert!(
            message.ends_with("the folder given with --from must hold it as it was published"),
            "{message}"
        );
        case.assert_left(if copy.is_some() { &[] } else { left }, reason);
    }
    // The folder itself is not a copy of the file.
    let case = Case::new(BODY, &[("file.gz", b"wrong")]);
    assert!(matches!(case.copy(&case.path("")), Err(DownloadError::BadCopy { .. })));
    case.assert_left(&[("file.gz", b"wrong")], "what was there");
}

#[test]
fn folders_that_cannot_be_written_and_parts_that_are_being_written_are_named() {
    let case = Case::new(BODY, &[("file.gz.part", b"0123")]);
    let file = Published { name: "file.gz", bytes: 10, sha256: None, mirrors: &[] };
    let mut watch = |_, _| ControlFlow::Continue(());
    let part = Part::open(&file, &case.path(""), &mut watch).map_err(|error| error.to_string()).unwrap();
    let message = case.fetch(PATIENT, &[]).unwrap_err().to_string();
    let expected = format!("{} is being written by another process", case.path("file.gz.part").display());
    assert!(message.starts_with(&expected), "{message}");
    case.assert_left(&[("file.gz.part", b"0123")], "the other's part");
    drop(part);
    fs::remove_dir_all(case.path("")).unwrap();
    fs::write(case.folder.path().join("data"), "a file").unwrap();
    let message = case.fetch(PATIENT, &[]).unwrap_err().to_string();
    assert!(message.starts_with(&format!("cannot write {}", case.path("").display())), "{message}");
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
        let case = Case::new(BODY, &[]);
        let server = Server::start(vec![Reply::Send(reply.into())]);
        let beginning = String::from_utf8_lossy(&reply[..reply.len().min(80)]);
        let failed = reasons(case.fetch(PATIENT, &[&server.address]));
        assert!(!failed.is_empty(), "{beginning}");
        assert!(server.requests().len() <= ATTEMPTS, "{beginning}");
        case.assert_left(&[], &format!("{beginning}: {failed:?}"));
    }
}

#[test]
fn the_sum_is_that_of_the_standard() {
    // FIPS 180-2, appendix B.1.
    let sum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(sha256(&mut &b"abc"[..]).unwrap(), sum);
}
