//! Ports, and what to do when one cannot be had.

use std::io;
use std::net::SocketAddr;

use tokio::net::TcpListener;

use crate::failure::Failure;

/// Takes a port.
pub(crate) async fn listen(address: SocketAddr, option: &str) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).await.map_err(|error| {
        let remedy = match error.kind() {
            io::ErrorKind::AddrInUse => {
                format!("; something else has that port, choose another with {option}")
            }
            io::ErrorKind::PermissionDenied => "; ports below 1024 are for root".to_owned(),
            io::ErrorKind::AddrNotAvailable => "; it is no address of this machine".to_owned(),
            _ => String::new(),
        };
        Failure::Refused(format!("{option} {address}: {error}{remedy}"))
    })
}

/// Takes a port, if one is named.
pub(crate) async fn listen_if(
    address: Option<SocketAddr>,
    option: &str,
) -> Result<Option<TcpListener>, Failure> {
    match address {
        Some(address) => listen(address, option).await.map(Some),
        None => Ok(None),
    }
}
