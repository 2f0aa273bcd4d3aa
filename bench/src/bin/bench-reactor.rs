//! Measures the reactor.
//!
//! `echo`: round trips a second of a small message over loopback, of each back end and of a
//! bare-socket loop for comparison, in one run. `door`: nanoseconds per request through a door, by
//! one thread that waits for each, and by one with many under way.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use clap::Parser;
use csd_reactor::{
    BackendKind, Class, Completions, Config, CoreId, Hosted, Listener, Pending, Stream,
};

const MESSAGE_BYTES: usize = 64;

const REQUESTS: u32 = 200_000;

/// Measures the reactor.
#[derive(Parser)]
enum Arguments {
    /// Round trips a second over loopback.
    Echo {
        /// Length of each run, seconds
        #[arg(default_value_t = 2)]
        seconds: u64,
    },
    /// Nanoseconds per request through a door.
    Door,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    match Arguments::parse() {
        Arguments::Echo { seconds } => echo(Duration::from_secs(seconds))?,
        Arguments::Door => door(),
    }
    Ok(())
}

fn echo(span: Duration) -> std::io::Result<()> {
    println!("{:>8}  {:>12.0} round trips/s", "bare", bare(span)?);
    for backend in [BackendKind::Epoll, BackendKind::Uring] {
        match over(backend, span) {
            Ok(rate) => println!("{:>8}  {rate:>12.0} round trips/s", backend.to_string()),
            Err(error) => println!("{:>8}  {error}", backend.to_string()),
        }
    }
    Ok(())
}

/// Blocking sockets, a thread at each end: the floor that the kernel sets.
fn bare(span: Duration) -> std::io::Result<f64> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let addr = listener.local_addr()?;
    let server = std::thread::spawn(move || -> std::io::Result<()> {
        let (mut stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        let mut message = [0; MESSAGE_BYTES];
        while stream.read_exact(&mut message).is_ok() {
            stream.write_all(&message)?;
        }
        Ok(())
    });
    let mut stream = TcpStream::connect(addr)?;
    stream.set_nodelay(true)?;
    let mut message = [7; MESSAGE_BYTES];
    let began = Instant::now();
    let mut trips = 0_u32;
    while began.elapsed() < span {
        stream.write_all(&message)?;
        stream.read_exact(&mut message)?;
        trips += 1;
    }
    let rate = f64::from(trips) / began.elapsed().as_secs_f64();
    drop(stream);
    server.join().map_err(|_| std::io::Error::other("the server panicked"))??;
    Ok(rate)
}

/// The same between two cores of a runtime.
fn over(backend: BackendKind, span: Duration) -> Result<f64, csd_reactor::Error> {
    let (give, take) = std::sync::mpsc::channel();
    let take = std::sync::Mutex::new(take);
    let give = std::sync::Mutex::new(give);
    let config = Config { backend, cores: 2, ..Config::default() };
    let take = std::sync::Arc::new(take);
    let give = std::sync::Arc::new(give);
    let rates = csd_reactor::run(&config, move |core| {
        let (give, take) = (give.clone(), take.clone());
        async move {
            let lock = "no holder of this lock panics";
            if core == CoreId(0) {
                let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
                let listener = Listener::bind(local).expect("a free port");
                let addr = listener.local_addr().expect("a bound socket");
                give.lock().expect(lock).send(addr).expect("the other core waits");
                return serve(listener).await;
            }
            let addr = take.lock().expect(lock).recv().expect("the other core sends");
            measure(addr, span).await
        }
    })?;
    Ok(rates[1])
}

async fn serve(listener: Listener) -> f64 {
    let (stream, _) = listener.accept().await.expect("a connection");
    let mut message = [0; MESSAGE_BYTES];
    while stream.recv_exact(&mut message).await.is_ok() {
        if stream.send_all(&message).await.is_err() {
            break;
        }
    }
    0.0
}

async fn measure(addr: SocketAddr, span: Duration) -> f64 {
    let measuring = csd_reactor::spawn(Class::Foreground, async move {
        let stream = Stream::connect(addr).await.expect("a listening server");
        let mut message = [7; MESSAGE_BYTES];
        let began = csd_reactor::now();
        let mut trips = 0_u32;
        while began.elapsed() < span {
            stream.send_all(&message).await.expect("a live server");
            stream.recv_exact(&mut message).await.expect("a live server");
            trips += 1;
        }
        f64::from(trips) / began.elapsed().as_secs_f64()
    });
    measuring.await
}

fn door() {
    let config = Config::default();
    let hosted = Hosted::start(&config, 1024).expect("a runtime");
    let door = hosted.door();
    let measured = |what: &str, run: &dyn Fn()| {
        run();
        let began = Instant::now();
        run();
        println!("{what}: {} ns", began.elapsed().as_nanos() / u128::from(REQUESTS));
    };
    measured("one at a time, blocking", &|| {
        for number in 0..REQUESTS {
            assert_eq!(door.call(CoreId(0), move || async move { number }), Ok(number));
        }
    });
    for depth in [8, 64, 512] {
        measured(&format!("{depth} under way, blocking"), &|| {
            for _ in 0..REQUESTS / depth {
                let pending: Vec<_> =
                    (0..depth).map(|n| door.submit(CoreId(0), move || async move { n })).collect();
                for (number, answer) in (0..depth).zip(pending) {
                    assert_eq!(answer.and_then(Pending::wait), Ok(number));
                }
            }
        });
    }
    measured("as many as fit, eventfd", &|| {
        let done = Completions::new().expect("a descriptor");
        let mut taken = 0;
        for number in 0..REQUESTS {
            let into = done.clone();
            let deliver = move |answer| into.push(answer);
            door.submit_with(CoreId(0), move || async move { number }, deliver).expect("open");
            taken += done.drain(usize::MAX).expect("the same process").len();
        }
        while taken < REQUESTS as usize {
            taken += done.drain(usize::MAX).expect("the same process").len();
            std::thread::yield_now();
        }
    });
}
