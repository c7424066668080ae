//! Typed kinds: types are checked when compiled, stored tasks when they are read.

use interval_queue_tasks::{
    Context, ErrorKind, Json, State, Task, TaskError, TaskKind, TaskQueue, Worker, WorkerBuilder,
};
use serde::{Deserialize, Serialize};

use crate::common::{finish, queue, stored};

#[derive(Serialize, Deserialize)]
struct Invoice {
    customer: String,
}

impl TaskKind for Invoice {
    const KIND: &'static str = "invoice";
    type Payload = Self;
    type Output = u32;
}

/// Its payload is the number of letters.
struct Mail;

impl TaskKind for Mail {
    const KIND: &'static str = "mail";
    type Payload = u32;
    type Output = String;
}

async fn invoice(_: Context<u32>, invoice: Invoice) -> Result<u32, TaskError> {
    Ok(invoice.customer.len() as u32)
}

fn worker(queue: &TaskQueue) -> WorkerBuilder<u32> {
    let mail = async |context: Context<u32>, letters: u32| {
        let number = context.inputs().await?.get_of::<Invoice>("invoice")?;
        Ok::<_, TaskError>(format!("{letters} letters on {number}, {}", context.state()))
    };
    let mail = move |context, letters| Box::pin(mail(context, letters));
    Worker::builder(queue).state(9).handler_of::<Invoice, _, _>(invoice).handler_of::<Mail, _, _>(mail)
}

#[tokio::test]
async fn typed_kinds_pass_payloads_inputs_and_results() {
    let queue = queue().await;
    let first = Task::of::<Invoice>(&Invoice { customer: "Ada".into() });
    let second = Task::of::<Mail>(&5).input("invoice", first.id());
    let (first_id, second_id) = (first.id(), second.id());
    queue.add_all([first, second]).await.unwrap();
    finish(worker(&queue)).await;
    assert_eq!(queue.wait_of::<Invoice>(first_id).await.unwrap(), 3);
    assert_eq!(queue.wait_of::<Mail>(second_id).await.unwrap(), "5 letters on 3, 9");
    let payload = stored(&queue, first_id).await.payload.unwrap();
    assert_eq!(payload.as_str(), r#"{"customer":"Ada"}"#, "the store has the payload alone");
    let other = queue.wait_of::<Mail>(first_id).await.unwrap_err();
    assert_eq!(other.kind(), ErrorKind::Mismatch);
    assert_eq!(other.to_string(), format!("task {first_id} is of kind \"invoice\", not \"mail\""));
}

#[tokio::test]
async fn a_payload_of_another_type_fails_for_good() {
    let queue = queue().await;
    let id = queue.add(Task::json("invoice", Json::new(r#"{"client":"Ada"}"#).unwrap())).await.unwrap().id();
    finish(worker(&queue)).await;
    let task = stored(&queue, id).await.task;
    assert_eq!((task.state, task.failures), (State::Failed, 1));
    assert!(task.error.unwrap().contains("missing field `customer`"));
}

#[tokio::test]
async fn two_handlers_of_a_typed_kind_are_rejected() {
    let queue = queue().await;
    let twice = worker(&queue).handler_of::<Invoice, _, _>(invoice).build().unwrap_err();
    assert_eq!(twice.to_string(), "kind \"invoice\" has two handlers: give it one");
}
