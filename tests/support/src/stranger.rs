//! Something that listens where a server is expected, and is none.

use std::{
    io::Write,
    net::{Shutdown, TcpListener},
    thread,
};

/// Says these bytes to everybody who comes and hangs up; without any it says nothing, for ever. Returns its
/// port.
pub fn stranger(says: &'static [u8]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        let mut guests = Vec::new();
        for guest in listener.incoming() {
            let mut guest = guest.unwrap();
            if !says.is_empty() {
                // A guest that has left does not hear it. To close it would take away what was not read yet.
                let _ = guest.write_all(says).and_then(|()| guest.shutdown(Shutdown::Write));
            }
            guests.push(guest);
        }
    });
    port
}
