//! A server with scripted replies.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;

/// What the server does with one request.
pub(super) enum Reply {
    /// Sends these bytes and closes the connection.
    Send(Vec<u8>),
    /// Sends these bytes and nothing more, until the other side closes the connection.
    FallSilent(Vec<u8>),
    /// Sends these bytes, and then others until the other side has enough.
    GoOnForEver(Vec<u8>),
}

/// A server on this machine that gives one reply after the other, and keeps what it was asked for.
pub(super) struct Server {
    pub(super) address: String,
    thread: JoinHandle<Vec<String>>,
}

impl Server {
    pub(super) fn start(replies: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        Self { address, thread: std::thread::spawn(move || serve(&listener, replies)) }
    }

    /// The paths it was asked for, each with the range if there was one.
    pub(super) fn requests(self) -> Vec<String> {
        // A connection that is closed without a word ends the server.
        drop(TcpStream::connect(self.address.trim_start_matches("http://")).unwrap());
        self.thread.join().unwrap()
    }
}

fn serve(listener: &TcpListener, replies: Vec<Reply>) -> Vec<String> {
    let mut replies = replies.into_iter();
    let mut requests = Vec::new();
    loop {
        let (mut stream, _) = listener.accept().unwrap();
        let Some(request) = read_request(&stream) else { return requests };
        requests.push(request);
        // The other side may leave when it likes, so nothing here must succeed.
        match replies.next() {
            Some(Reply::Send(bytes)) => drop(stream.write_all(&bytes)),
            Some(Reply::FallSilent(bytes)) => {
                drop(stream.write_all(&bytes));
                let _ = stream.read(&mut [0]);
            }
            Some(Reply::GoOnForEver(bytes)) => {
                let mut sent = stream.write_all(&bytes);
                while sent.is_ok() {
                    sent = stream.write_all(&[b'x'; 1 << 12]);
                }
            }
            None => drop(stream.write_all(b"HTTP/1.1 500 More Than Expected\r\nContent-Length: 0\r\n\r\n")),
        }
    }
}

/// The path and the range of a request; none if the connection was closed instead.
fn read_request(stream: &TcpStream) -> Option<String> {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok).take_while(|line| !line.is_empty());
    let mut request = lines.next()?.split(' ').nth(1)?.to_owned();
    for line in lines {
        if let Some((name, value)) = line.split_once(": ")
            && name.eq_ignore_ascii_case("range")
        {
            request.push(' ');
            request.push_str(value);
        }
    }
    Some(request)
}

/// A response with its length.
pub(super) fn response(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n{headers}\r\n", body.len());
    [head.as_bytes(), body].concat()
}

pub(super) fn whole(body: &[u8]) -> Reply {
    Reply::Send(response("200 OK", "", body))
}

/// The bytes from `first` on, as a server sends them that was asked for a range.
pub(super) fn rest(body: &[u8], first: usize) -> Reply {
    let range = format!("Content-Range: bytes {first}-{}/{}\r\n", body.len() - 1, body.len());
    Reply::Send(response("206 Partial Content", &range, &body[first..]))
}

pub(super) fn redirect(location: &str) -> Reply {
    Reply::Send(response("302 Found", &format!("Location: {location}\r\n"), b"over there"))
}

pub(super) fn not_found() -> Reply {
    Reply::Send(response("404 Not Found", "", b"nothing here"))
}

/// A response that promises all of the body, and of which only the first bytes are sent.
pub(super) fn beginning(body: &[u8], n_bytes: usize) -> Vec<u8> {
    let mut bytes = response("200 OK", "", body);
    bytes.truncate(bytes.len() - body.len() + n_bytes);
    bytes
}
