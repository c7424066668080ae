//! The call that a job makes at its start, where a server is to judge the pace.

use std::{
    io::{self, Write},
    net::{Ipv4Addr, TcpStream},
    thread,
};

/// The same in every worker, whatever its language.
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: limiter\r\n\r\n";

/// A connection that a worker keeps to the server. What it answers is read and thrown away: the server writes
/// down itself what it refused.
#[derive(Debug)]
pub(crate) struct Caller(TcpStream);

impl Caller {
    pub(crate) fn connect(port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_nodelay(true)?;
        let mut answers = stream.try_clone()?;
        thread::spawn(move || io::copy(&mut answers, &mut io::sink()));
        Ok(Self(stream))
    }

    /// Sends a request and waits for nothing.
    pub(crate) fn call(&self) -> io::Result<()> {
        (&self.0).write_all(REQUEST)
    }
}
