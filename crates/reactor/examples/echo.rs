//! Round trips a second of a small message over loopback: each back end, and a bare-socket loop
//! for comparison, in one run.
//!
//! `cargo run --release -p csd-reactor --example echo [seconds]`

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use csd_reactor::{BackendKind, Class, Config, CoreId, Listener, Stream};

const MESSAGE_BYTES: usize = 64;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seconds = std::env::args().nth(1).map_or(Ok(2), |text| text.parse())?;
    let span = Duration::from_secs(seconds);
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
    let began = std::time::Instant::now();
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
