//! The queue of messages to a worker. A large message holds reserved memory until it is sent, and
//! the worker must receive it within a time limit.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use arbiter_proto::v1::CoordinatorMessage;
use tokio::sync::{mpsc, oneshot};
use tokio_stream::Stream;
use tonic::Status;

use crate::tournament::lot_assignment::StateReservation;

type Message = Result<CoordinatorMessage, Status>;

/// Memory that is reserved until a message is sent.
#[derive(Debug)]
pub(super) struct HeldMemory {
    _memory: StateReservation,
    /// Its drop signals that the message was sent.
    _sent: oneshot::Sender<()>,
}

/// The memory of a message, and a receiver that completes when the message was sent.
pub(super) fn hold(memory: StateReservation) -> (HeldMemory, oneshot::Receiver<()>) {
    let (sent, is_sent) = oneshot::channel();
    (HeldMemory { _memory: memory, _sent: sent }, is_sent)
}

/// The sender of messages to a worker.
#[derive(Clone, Debug)]
pub(super) struct SendQueue(mpsc::Sender<(Message, Option<HeldMemory>)>);

impl SendQueue {
    /// Appends a message once there is room for it.
    pub(super) async fn send(
        &self,
        message: Message,
        memory: Option<HeldMemory>,
    ) -> Result<(), Disconnected> {
        self.0.send((message, memory)).await.map_err(|_| Disconnected)
    }

    /// Waits until the worker has disconnected.
    pub(super) async fn closed(&self) {
        self.0.closed().await;
    }
}

/// The worker has disconnected.
#[derive(Debug)]
pub(super) struct Disconnected;

/// The stream of messages to a worker. The transport asks for the next message when it has room for
/// more than the last one, so the memory of the last one is held until then.
#[derive(Debug)]
pub(super) struct Messages {
    messages: mpsc::Receiver<(Message, Option<HeldMemory>)>,
    last: Option<HeldMemory>,
}

impl Stream for Messages {
    type Item = Message;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Message>> {
        self.last = None;
        let Some((message, memory)) = ready!(self.messages.poll_recv(context)) else {
            return Poll::Ready(None);
        };
        self.last = memory;
        Poll::Ready(Some(message))
    }
}

/// A queue of at most `capacity` messages to a worker.
pub(super) fn channel(capacity: usize) -> (SendQueue, Messages) {
    let (sender, messages) = mpsc::channel(capacity);
    (SendQueue(sender), Messages { messages, last: None })
}
