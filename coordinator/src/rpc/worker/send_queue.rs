//! Messages on their way to a worker. Those that are large hold memory until they are sent, and have
//! a time within which the worker is to take them.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use arbiter_proto::v1::CoordinatorMessage;
use tokio::sync::{mpsc, oneshot};
use tokio_stream::Stream;
use tonic::Status;

use crate::tournament::lot_assignment::StateReservation;

type Message = Result<CoordinatorMessage, Status>;

/// What is held until a message is sent.
#[derive(Debug)]
pub(super) struct Weight {
    _memory: StateReservation,
    /// Says by its end that the message was taken.
    _taken: oneshot::Sender<()>,
}

/// What a message holds, and what ends when it was taken.
pub(super) fn weigh(memory: StateReservation) -> (Weight, oneshot::Receiver<()>) {
    let (taken, is_taken) = oneshot::channel();
    (Weight { _memory: memory, _taken: taken }, is_taken)
}

/// Where messages to a worker are put.
#[derive(Clone, Debug)]
pub(super) struct Outbound(mpsc::Sender<(Message, Option<Weight>)>);

impl Outbound {
    /// Puts a message behind the others, once there is room for it.
    pub(super) async fn send(&self, message: Message, weight: Option<Weight>) -> Result<(), Left> {
        self.0.send((message, weight)).await.map_err(|_| Left)
    }

    /// Waits until the worker has left.
    pub(super) async fn closed(&self) {
        self.0.closed().await;
    }
}

/// The worker has left.
#[derive(Debug)]
pub(super) struct Left;

/// The messages as they are sent. The next one is asked for when there is room for more than the
/// last, so the last one is in memory until then.
#[derive(Debug)]
pub(super) struct Messages {
    messages: mpsc::Receiver<(Message, Option<Weight>)>,
    last: Option<Weight>,
}

impl Stream for Messages {
    type Item = Message;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Message>> {
        self.last = None;
        let Some((message, weight)) = ready!(self.messages.poll_recv(context)) else {
            return Poll::Ready(None);
        };
        self.last = weight;
        Poll::Ready(Some(message))
    }
}

/// A queue of at most so many messages to a worker.
pub(super) fn channel(most: usize) -> (Outbound, Messages) {
    let (outbound, messages) = mpsc::channel(most);
    (Outbound(outbound), Messages { messages, last: None })
}
