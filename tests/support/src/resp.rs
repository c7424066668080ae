//! As much of the Redis protocol as a test needs to give a server an order behind the client's back.

use std::{
    io::{BufRead, BufReader, Error, Result, Write},
    net::{Ipv4Addr, TcpStream},
    time::Duration,
};

const PATIENCE: Duration = Duration::from_secs(10);

/// Sends one command and gives its reply as lines of text. An error reply is an error.
pub(crate) fn command(port: u16, words: &[&str]) -> Result<Vec<String>> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut request = format!("*{}\r\n", words.len());
    for word in words {
        request += &format!("${}\r\n{word}\r\n", word.len());
    }
    stream.write_all(request.as_bytes())?;
    let mut lines = Vec::new();
    read_reply(&mut BufReader::new(stream), &mut lines)?;
    Ok(lines)
}

fn read_reply(from: &mut impl BufRead, lines: &mut Vec<String>) -> Result<()> {
    let mut head = String::new();
    from.read_line(&mut head)?;
    let head = head.trim_end();
    let Some((kind, rest)) = head.split_at_checked(1) else {
        return Err(Error::other("the server hung up"));
    };
    let count = || rest.parse::<i64>().map_err(Error::other);
    match kind {
        "+" | ":" => lines.push(rest.to_owned()),
        "$" => {
            let Ok(length) = usize::try_from(count()?) else {
                lines.push(String::new());
                return Ok(());
            };
            let mut text = vec![0; length + 2];
            from.read_exact(&mut text)?;
            text.truncate(length);
            lines.push(String::from_utf8_lossy(&text).into_owned());
        }
        "*" => {
            for _ in 0..count()? {
                read_reply(from, lines)?;
            }
        }
        _ => return Err(Error::other(rest.to_owned())),
    }
    Ok(())
}
