//! Talks to a server while others wait: a runtime on a thread of its own.

use std::thread::JoinHandle;

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::server::NatsError;

/// A runtime on a thread of its own. It ends when this is dropped.
pub(crate) struct Background {
    handle: Handle,
    stop: Option<oneshot::Sender<()>>,
    driver: Option<JoinHandle<()>>,
}

impl Background {
    pub(crate) fn start() -> Result<Background, NatsError> {
        let cannot = |error| NatsError(format!("cannot start: {error}"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(cannot)?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let drive = move || drop(runtime.block_on(stopped));
        let driver = std::thread::Builder::new().name("queue".to_owned()).spawn(drive);
        Ok(Background { handle, stop: Some(stop), driver: Some(driver.map_err(cannot)?) })
    }

    /// Waits for something that needs the runtime, which other threads may do at the same time.
    pub(crate) fn wait<T>(&self, doing: impl Future<Output = T>) -> T {
        self.handle.block_on(doing)
    }

    /// Has something done besides.
    pub(crate) fn spawn(&self, doing: impl Future<Output = ()> + Send + 'static) -> Besides {
        Besides(self.handle.spawn(doing).abort_handle())
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(driver) = self.driver.take() {
            // If it has panicked, the panic has been reported.
            let _ = driver.join();
        }
    }
}

/// Something that is done besides, as long as this is there.
pub(crate) struct Besides(tokio::task::AbortHandle);

impl Drop for Besides {
    fn drop(&mut self) {
        self.0.abort();
    }
}
