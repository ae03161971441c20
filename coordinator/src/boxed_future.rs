//! Futures without their types.
//!
//! The compiler checks whether a future can be sent to other threads, and so looks at each future
//! in it, at each place that spawns or boxes it. A box ends this: where a future of many others is
//! boxed once, its users see only that it can be sent, and none of its code is compiled with them.

use std::pin::Pin;

/// A future whose code is compiled where it is made.
pub(crate) type BoxedFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;
