//! A network that a test can spoil: a TCP proxy on a free loopback port before a server.

use std::{
    io::{self, Read, Write},
    net::{Ipv4Addr, Shutdown, TcpListener, TcpStream},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    thread,
    time::Duration,
};

/// A proxy. It ends, with all its connections, when this is dropped.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    network: Arc<Network>,
}

/// What all connections share.
#[derive(Debug, Default)]
struct Network {
    /// The least and the longest time that bytes take in each direction.
    delay: Mutex<(Duration, Duration)>,
    /// Whether new connections are silent, too.
    silent: AtomicBool,
    /// How many replies are yet to be lost.
    losing: AtomicU32,
    ended: AtomicBool,
    connections: Mutex<Vec<Arc<Connection>>>,
}

#[derive(Debug)]
struct Connection {
    client: TcpStream,
    server: TcpStream,
    /// Swallows what is said and keeps both ends open, for good.
    silent: AtomicBool,
    /// One end has hung up.
    ended: AtomicBool,
}

impl Proxy {
    /// A proxy before the server at a port of this host. It spoils nothing yet.
    pub fn before(server: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let port = listener.local_addr().expect("its address").port();
        let network = Arc::new(Network::default());
        let shared = network.clone();
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if shared.ended.load(Ordering::Acquire) {
                    return;
                }
                // A server that is not there hangs up on the client.
                let _ = shared.connect(client, server);
            }
        });
        Self { port, network }
    }

    /// Where clients find it.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// From now on bytes take so long in each direction, at random.
    pub fn delay(&self, least: Duration, longest: Duration) {
        *lock(&self.network.delay) = (least, longest.max(least));
    }

    /// Ends all connections.
    pub fn cut(&self) {
        lock(&self.network.connections).drain(..).for_each(|connection| connection.cut());
    }

    /// The next so many replies are lost: the server gets the request, and the connection ends instead of its
    /// reply.
    pub fn lose_replies(&self, count: u32) {
        self.network.losing.store(count, Ordering::Release);
    }

    /// How many of these replies are yet to be lost.
    pub fn replies_to_lose(&self) -> u32 {
        self.network.losing.load(Ordering::Acquire)
    }

    /// Becomes a black hole: nothing arrives any more, nothing ends, and new connections are made but never
    /// answered.
    pub fn fall_silent(&self) {
        self.network.silent.store(true, Ordering::Release);
        for connection in &*lock(&self.network.connections) {
            connection.silent.store(true, Ordering::Release);
        }
    }

    /// Serves new connections again. Those that were silenced stay so, as if a router had forgotten them.
    pub fn speak(&self) {
        self.network.silent.store(false, Ordering::Release);
        lock(&self.network.connections).retain(|connection| !connection.ended.load(Ordering::Acquire));
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.network.ended.store(true, Ordering::Release);
        // Wakes the thread that accepts.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
        self.cut();
    }
}

impl Network {
    fn connect(self: &Arc<Self>, client: TcpStream, server: u16) -> io::Result<()> {
        let server = TcpStream::connect((Ipv4Addr::LOCALHOST, server))?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let ends = [(client.try_clone()?, server.try_clone()?), (server.try_clone()?, client.try_clone()?)];
        let mut connections = lock(&self.connections);
        let silent = AtomicBool::new(self.silent.load(Ordering::Acquire));
        let connection = Arc::new(Connection { client, server, silent, ended: AtomicBool::new(false) });
        connections.push(connection.clone());
        for ((from, to), replies) in ends.into_iter().zip([false, true]) {
            let (network, connection) = (self.clone(), connection.clone());
            thread::spawn(move || network.carry(&connection, from, to, replies));
        }
        Ok(())
    }

    fn carry(&self, connection: &Connection, mut from: TcpStream, mut to: TcpStream, replies: bool) {
        let mut bytes = [0; 16 * 1024];
        loop {
            let mut count = from.read(&mut bytes).unwrap_or(0);
            let silent = || connection.silent.load(Ordering::Acquire);
            if count == 0 {
                connection.ended.store(true, Ordering::Release);
                // Nobody hears either that the other end of a silent connection has hung up.
                if !silent() {
                    connection.cut();
                }
                return;
            }
            let (least, longest) = *lock(&self.delay);
            if !longest.is_zero() {
                count += rest(&from, &mut bytes[count..]);
                thread::sleep(rand::random_range(least..=longest));
            }
            let less_one = |count: u32| count.checked_sub(1);
            if replies && self.losing.fetch_update(Ordering::AcqRel, Ordering::Acquire, less_one).is_ok() {
                return connection.cut();
            }
            if !silent() && to.write_all(&bytes[..count]).is_err() {
                return connection.cut();
            }
        }
    }
}

/// What was sent together with what has come already: on a busy host it comes in parts, and a delay of each of
/// them by itself would be that of several trips.
fn rest(from: &TcpStream, bytes: &mut [u8]) -> usize {
    let mut count = 0;
    let limited = |limit| from.set_read_timeout(limit).is_ok();
    if limited(Some(Duration::from_millis(5))) {
        while count < bytes.len()
            && let Ok(more @ 1..) = (&mut &*from).read(&mut bytes[count..])
        {
            count += more;
        }
    }
    limited(None);
    count
}

impl Connection {
    fn cut(&self) {
        self.ended.store(true, Ordering::Release);
        for end in [&self.client, &self.server] {
            // It may have ended already.
            let _ = end.shutdown(Shutdown::Both);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::{io::ErrorKind, time::Instant};

    use super::*;

    /// A server that repeats each byte, and a proxy before it.
    fn echo() -> Proxy {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                thread::spawn(move || io::copy(&mut &stream, &mut &stream));
            }
        });
        Proxy::before(port)
    }

    fn client(proxy: &Proxy) -> TcpStream {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, proxy.port())).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        stream
    }

    /// What becomes of a byte that is sent: the byte again, the end of the connection, or nothing.
    fn ask(mut stream: &TcpStream) -> Result<u8, ErrorKind> {
        let mut byte = [7];
        let answered = stream.write_all(&byte).and_then(|()| stream.read_exact(&mut byte));
        answered.map(|()| byte[0]).map_err(|error| match error.kind() {
            ErrorKind::WouldBlock => ErrorKind::TimedOut,
            ErrorKind::TimedOut => ErrorKind::TimedOut,
            _ => ErrorKind::UnexpectedEof,
        })
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "measures the delay")]
    fn bytes_take_their_time() {
        let proxy = echo();
        let stream = client(&proxy);
        assert_eq!(ask(&stream), Ok(7));
        proxy.delay(Duration::from_millis(40), Duration::from_millis(60));
        let begun = Instant::now();
        assert_eq!(ask(&stream), Ok(7));
        assert!(begun.elapsed() >= Duration::from_millis(80));
    }

    #[test]
    fn connections_are_cut_and_new_ones_made() {
        let proxy = echo();
        let stream = client(&proxy);
        assert_eq!(ask(&stream), Ok(7));
        proxy.cut();
        assert_eq!(ask(&stream), Err(ErrorKind::UnexpectedEof));
        assert_eq!(ask(&client(&proxy)), Ok(7));
    }

    #[test]
    fn a_lost_reply_ends_its_connection_alone() {
        let proxy = echo();
        let (first, second) = (client(&proxy), client(&proxy));
        proxy.lose_replies(1);
        assert_eq!(ask(&first), Err(ErrorKind::UnexpectedEof));
        assert_eq!(proxy.replies_to_lose(), 0);
        assert_eq!(ask(&second), Ok(7));
    }

    #[test]
    fn a_silent_connection_stays_open_and_silent() {
        let proxy = echo();
        let old = client(&proxy);
        assert_eq!(ask(&old), Ok(7));
        proxy.fall_silent();
        assert_eq!(ask(&old), Err(ErrorKind::TimedOut));
        assert_eq!(ask(&client(&proxy)), Err(ErrorKind::TimedOut));
        proxy.speak();
        assert_eq!(ask(&old), Err(ErrorKind::TimedOut));
        assert_eq!(ask(&client(&proxy)), Ok(7));
    }
}
