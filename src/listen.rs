//! Binds ports and explains why one cannot be bound.

use std::io;
use std::net::SocketAddr;

use tokio::net::TcpListener;

use crate::failure::Failure;

/// Binds the address of `option`. Errors name the option.
pub(crate) async fn listen(address: SocketAddr, option: &str) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).await.map_err(|error| {
        let remedy = match error.kind() {
            io::ErrorKind::AddrInUse => {
                format!("; another program uses this port, choose another with {option}")
            }
            io::ErrorKind::PermissionDenied => "; ports below 1024 need root".to_owned(),
            io::ErrorKind::AddrNotAvailable => {
                "; this machine does not have this address".to_owned()
            }
            _ => String::new(),
        };
        Failure::Refused(format!("{option} {address}: {error}{remedy}"))
    })
}

/// Binds the address of `option`, if the option is set.
pub(crate) async fn listen_if(
    address: Option<SocketAddr>,
    option: &str,
) -> Result<Option<TcpListener>, Failure> {
    match address {
        Some(address) => listen(address, option).await.map(Some),
        None => Ok(None),
    }
}
