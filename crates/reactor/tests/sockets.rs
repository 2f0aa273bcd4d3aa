//! Sockets on all back ends.

mod common;

use std::io::{ErrorKind, IoSlice};
use std::net::{Shutdown, SocketAddr};
use std::time::Duration;

use common::local;
use csd_reactor::{
    Class, CoreId, JoinHandle, Listener, Stream, call, random_u64, sleep, spawn, yield_now,
};

everywhere! {
    echo_gives_back_what_was_sent: 1;
    a_full_socket_pushes_back: 1;
    connecting_to_nobody_is_refused: 1;
    end_of_stream_then_half_close: 1;
    a_peer_that_leaves_data_unread_resets: 1;
    two_hundred_connections: 1;
    a_connection_moves_to_another_core: 2;
    a_dropped_socket_closes: 1;
    a_unix_socket_carries_bytes_and_is_named_once: 1;
}

/// Echoes every connection until it ends.
fn echo_server() -> (SocketAddr, JoinHandle<()>) {
    let listener = Listener::bind(local()).expect("a free port");
    let addr = listener.local_addr().expect("a bound socket");
    let server = spawn(Class::System, async move {
        loop {
            let (stream, _) = listener.accept().await.expect("a connection");
            drop(spawn(Class::Foreground, async move { echo(stream).await }));
        }
    });
    (addr, server)
}

async fn echo(stream: Stream) {
    let mut bytes = vec![0; 64 << 10];
    loop {
        match stream.try_recv(&mut bytes) {
            Ok(Some(0)) | Err(_) => return,
            Ok(Some(count)) => {
                if stream.send_all(&bytes[..count]).await.is_err() {
                    return;
                }
            }
            Ok(None) => stream.readable().await.expect("a watched socket"),
        }
    }
}

async fn connected_pair() -> (Stream, Stream) {
    let listener = Listener::bind(local()).expect("a free port");
    let addr = listener.local_addr().expect("a bound socket");
    let connecting = spawn(Class::System, Stream::connect(addr));
    let (server, from) = listener.accept().await.expect("a connection");
    let client = connecting.await.expect("a listening server");
    assert_eq!(client.local_addr().ok(), from.ip());
    assert_eq!(client.peer_addr().expect("connected"), addr);
    (client, server)
}

async fn echo_gives_back_what_was_sent(_core: CoreId) {
    let (addr, _server) = echo_server();
    let stream = std::rc::Rc::new(Stream::connect(addr).await.expect("a listening server"));
    let mut word = random_u64();
    let sent: Vec<u8> = (0..700_000)
        .map(|_| {
            word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            word.to_le_bytes()[7]
        })
        .collect();
    let (writer, bytes) = (std::rc::Rc::clone(&stream), sent.clone());
    let writing = spawn(Class::Foreground, async move {
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let size = 1 + (random_u64() % 30_000) as usize;
            let (now, later) = rest.split_at(size.min(rest.len()));
            let (one, two) = now.split_at(now.len() / 3);
            // One vectored send, the rest of it plainly.
            let sent = match writer.try_send(&[IoSlice::new(one), IoSlice::new(two)]) {
                Ok(sent) => sent.unwrap_or(0),
                Err(error) => panic!("{error}"),
            };
            writer.send_all(&now[sent..]).await.expect("a live server");
            rest = later;
        }
    });
    let mut received = vec![0; sent.len()];
    stream.recv_exact(&mut received).await.expect("an echo");
    writing.await;
    assert!(received == sent);
}

async fn a_full_socket_pushes_back(_core: CoreId) {
    let (client, server) = connected_pair().await;
    let block = vec![7; 64 << 10];
    let mut sent = 0;
    let mut refusals = 0;
    while refusals < 20 {
        match client.try_send(&[IoSlice::new(&block)]).expect("a live peer") {
            Some(count) => (sent, refusals) = (sent + count, 0),
            None => {
                refusals += 1;
                sleep(Duration::from_millis(1)).await;
            }
        }
        assert!(sent < 1 << 30, "there is no end to what it takes");
    }
    let reading = spawn(Class::Foreground, async move {
        let mut bytes = vec![0; sent];
        server.recv_exact(&mut bytes).await.expect("all that was sent");
        assert!(bytes.iter().all(|byte| *byte == 7));
        server
    });
    client.writable().await.expect("a watched socket");
    drop(reading.await);
}

async fn connecting_to_nobody_is_refused(_core: CoreId) {
    let listener = Listener::bind(local()).expect("a free port");
    let addr = listener.local_addr().expect("a bound socket");
    let taken = Listener::bind(addr).err().map(|error| error.kind());
    assert_eq!(taken, Some(ErrorKind::AddrInUse));
    drop(listener);
    // A closing may take the ring a moment.
    let refused = loop {
        match Stream::connect(addr).await {
            Ok(_) => sleep(Duration::from_millis(1)).await,
            Err(error) => break error.kind(),
        }
    };
    assert_eq!(refused, ErrorKind::ConnectionRefused);
}

async fn end_of_stream_then_half_close(_core: CoreId) {
    let (client, server) = connected_pair().await;
    client.send_all(b"question").await.expect("a live peer");
    client.shutdown(Shutdown::Write).expect("a live peer");
    let mut question = [0; 8];
    server.recv_exact(&mut question).await.expect("eight bytes");
    let early = server.recv_exact(&mut question).await.err().map(|error| error.kind());
    assert_eq!(early, Some(ErrorKind::UnexpectedEof));
    // The other direction is open yet, and has room for this in any window.
    server.send_all(&vec![3; 100_000]).await.ok();
    drop(server);
    let mut answer = vec![0; 100_000];
    client.recv_exact(&mut answer).await.expect("the answer");
    assert!(client.send_all(b"late").await.is_err());
}

async fn a_peer_that_leaves_data_unread_resets(_core: CoreId) {
    let (client, server) = connected_pair().await;
    client.send_all(&[1; 1000]).await.expect("a live peer");
    server.readable().await.expect("a watched socket");
    drop(server);
    let mut byte = [0];
    let reset = client.recv_exact(&mut byte).await.err().map(|error| error.kind());
    assert_eq!(reset, Some(ErrorKind::ConnectionReset));
}

async fn two_hundred_connections(_core: CoreId) {
    let (addr, _server) = echo_server();
    let clients: Vec<_> = (0..200_u8)
        .map(|number| {
            spawn(Class::Foreground, async move {
                let stream = Stream::connect(addr).await.expect("a listening server");
                for round in 0..20_u8 {
                    let sent = [number ^ round; 333];
                    stream.send_all(&sent).await.expect("a live server");
                    let mut received = [0; 333];
                    stream.recv_exact(&mut received).await.expect("an echo");
                    assert_eq!(received, sent);
                }
            })
        })
        .collect();
    for client in clients {
        client.await;
    }
}

async fn a_connection_moves_to_another_core(core: CoreId) {
    if core == CoreId(1) {
        return common::outlast(CoreId(0)).await;
    }
    let (client, server) = connected_pair().await;
    // Leave a waker behind, which must not be needed.
    let mut nothing = [0; 1];
    assert_eq!(server.try_recv(&mut nothing).expect("a live peer"), None);
    let detached = server.detach();
    let moved = move || async move {
        let server = detached.attach().expect("a watched socket");
        let mut bytes = [0; 5];
        server.recv_exact(&mut bytes).await.expect("five bytes");
        server.send_all(&bytes).await.expect("a live peer");
        server.readable().await.expect("a watched socket");
    };
    drop(spawn(Class::System, call(CoreId(1), Class::Foreground, moved)));
    sleep(Duration::from_millis(2)).await;
    client.send_all(b"hello").await.expect("a live peer");
    let mut bytes = [0; 5];
    client.recv_exact(&mut bytes).await.expect("an answer");
    assert_eq!(&bytes, b"hello");
}

async fn a_dropped_socket_closes(_core: CoreId) {
    let (client, server) = connected_pair().await;
    let waiting = spawn(Class::Foreground, async move {
        server.readable().await.expect("never");
    });
    yield_now().await;
    sleep(Duration::from_millis(2)).await;
    // It waits, so an interest is armed in the kernel; that must not keep it open.
    waiting.abort();
    let mut byte = [0];
    let end = client.recv_exact(&mut byte).await.err().map(|error| error.kind());
    assert_eq!(end, Some(ErrorKind::UnexpectedEof));
}

async fn a_unix_socket_carries_bytes_and_is_named_once(_core: CoreId) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s");
    let refused = Stream::connect(&*path).await.err().map(|error| error.kind());
    let refusals = [Some(ErrorKind::NotFound), Some(ErrorKind::ConnectionRefused)];
    assert!(refusals.contains(&refused), "{refused:?}");
    let listener = Listener::bind(&*path).expect("a free path");
    assert_eq!(listener.local_addr().err().map(|e| e.kind()), Some(ErrorKind::Unsupported));
    let there = path.clone();
    let connecting = spawn(Class::System, async move { Stream::connect(&*there).await });
    let (server, from) = listener.accept().await.expect("a connection");
    assert_eq!(from.path(), Some(&*path));
    let client = connecting.await.expect("a listening server");
    let sending = spawn(Class::Foreground, async move {
        client.send_all(&[7; 1 << 20]).await.expect("a live peer");
        client.shutdown(Shutdown::Write).expect("a live peer");
        client
    });
    let mut bytes = vec![0; 1 << 20];
    server.recv_exact(&mut bytes).await.expect("all of it");
    assert!(bytes.iter().all(|byte| *byte == 7));
    assert_eq!(
        server.recv_exact(&mut [0]).await.err().map(|e| e.kind()),
        Some(ErrorKind::UnexpectedEof)
    );
    let twice = Listener::bind(&*path).err().map(|error| error.kind());
    assert_eq!(twice, Some(ErrorKind::AddrInUse));
    drop((sending.await, server, listener));
    drop(Listener::bind(&*path).expect("the path is free again"));
}
