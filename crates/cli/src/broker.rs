//! The flags that select a broker.

use anyhow::Result;
use everett_cluster::{Broker, Secrets, broker_url, connect};
use std::path::PathBuf;

/// Which broker.
#[derive(clap::Args)]
pub struct BrokerArgs {
    /// The address of the broker; default: EVERETT_BROKER.
    #[arg(long, value_name = "URL")]
    broker: Option<String>,
    /// The file with the credentials of a user of NATS; default: EVERETT_BROKER_CREDS.
    #[arg(long, value_name = "FILE")]
    nats_creds: Option<PathBuf>,
}

impl BrokerArgs {
    /// Connects to the broker.
    pub fn connect(&self) -> Result<Box<dyn Broker>> {
        let url = broker_url(self.broker.as_deref())?;
        Ok(connect(
            &url,
            &Secrets::from_environment(self.nats_creds.as_deref())?,
            None,
        )?)
    }
}
