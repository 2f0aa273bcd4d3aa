//! [`TunnelEnd::keep`]: reconnects the end of a tunnel.

use std::time::Duration;

use csd_reactor::sleep;

use super::packets::{Packets, TunnelPort};
use super::{TunnelEnd, TunnelError};

/// Pause before an attempt to connect again.
const PAUSE: Duration = Duration::from_millis(200);

impl TunnelEnd {
    /// Carries packets over one connection after the other, until the device fails or the drive
    /// gives the end to this host no more; returns that error. Calls `tell` with the error that
    /// ended a connection or an attempt to connect, and with `None` when there is a new connection.
    pub async fn keep<D: Packets>(
        self,
        port: &TunnelPort<D>,
        mut tell: impl FnMut(Option<&TunnelError>),
    ) -> TunnelError {
        let (address, options) = (self.controller.address().clone(), self.options.clone());
        let before = self.plan();
        let mut ended = self.carry(port).await;
        drop(self);
        loop {
            if ended.is_final() {
                return ended;
            }
            tell(Some(&ended));
            sleep(PAUSE).await;
            ended = match Self::connect(&address, &options).await {
                Ok(end) if end.plan() != before => TunnelError::Changed(address.to_string()),
                Ok(mut end) => match end.join().await {
                    Ok(()) => {
                        tell(None);
                        end.carry(port).await
                    }
                    Err(error) => error,
                },
                Err(error) => error,
            };
        }
    }

    /// Returns the MTU and the addresses, for which the device was made.
    fn plan(&self) -> (u32, [Option<(std::net::IpAddr, u8)>; 2]) {
        let ends = &self.log.ends;
        (self.log.mtu, [ends[0].network(), ends[1].network()])
    }
}

impl TunnelError {
    /// Returns true if connecting again does not help.
    fn is_final(&self) -> bool {
        !matches!(self, Self::Drive(_))
    }
}
