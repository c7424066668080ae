//! A pipeline that survives, breaks, and goes on where it broke.
//!
//! One task fetches a book, a hundred count the words of a page each, one adds them up, and one writes a mail. They are
//! a flow: added as a whole, waited for as a whole. Three worker processes run it. Page 42 is damaged, so the flow
//! fails, and says which task and why. The page is repaired, and a retry of the flow runs what failed and what
//! was cancelled for it; the 99 pages that were counted are not counted again.
//!
//!     cargo run --features tasks --example pipeline

use std::{
    env,
    error::Error,
    fs,
    path::{Path, PathBuf},
};

use interval_queue_tasks::{Context, Flow, FlowId, Order, State, Task, TaskError, TaskQueue, Verb, Worker};
use tokio::process::{Child, Command};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;
type Outcome<T> = std::result::Result<T, TaskError>;

const PAGES: usize = 100;
const DAMAGED: usize = 42;

/// The pages of the book. One of them is damaged.
async fn fetch(context: Context<PathBuf>, book: String) -> Outcome<Vec<String>> {
    let text = fs::read_to_string(context.state().join(book))?;
    Ok(text.lines().map(str::to_owned).collect())
}

/// How many words a page has.
async fn count(context: Context<PathBuf>, page: usize) -> Outcome<usize> {
    let pages: Vec<String> = context.inputs().await?.get("fetch")?;
    if page == DAMAGED && !context.state().join("repaired").exists() {
        return Err(TaskError::permanent(format!("page {page} is damaged")));
    }
    Ok(pages[page].split(' ').count())
}

/// All of them.
async fn join(context: Context<PathBuf>, pages: usize) -> Outcome<usize> {
    let inputs = context.inputs().await?;
    (0..pages).map(|page| Ok(inputs.get::<usize>(&part(page))?)).sum()
}

async fn mail(context: Context<PathBuf>, to: String) -> Outcome<String> {
    let words: usize = context.inputs().await?.get("words")?;
    Ok(format!("Dear {to}, the book has {words} words."))
}

fn part(page: usize) -> String {
    format!("page {page}")
}

fn flow() -> Result<Flow> {
    let parts = (0..PAGES).map(|page| (part(page), Task::new("count", &page).after("fetch")));
    let join = (0..PAGES).map(part).fold(Task::new("join", &PAGES), Task::after);
    let flow = Flow::named(FlowId::new("the book of May")?)
        .task("fetch", Task::new("fetch", "book.txt"))
        .tasks(parts)
        .task("join", join)
        .task("mail", Task::new("mail", "Ada").input("words", "join"));
    Ok(flow)
}

#[tokio::main]
async fn main() -> Result<()> {
    match env::var_os("PIPELINE") {
        Some(directory) => work(directory.into()).await,
        None => parent().await,
    }
}

async fn open(directory: &Path) -> Result<TaskQueue> {
    let store = format!("sqlite:{}", directory.join("tasks.db").display());
    Ok(TaskQueue::builder("books").connect(&store).await?)
}

/// What each worker process does until it is killed.
async fn work(directory: PathBuf) -> Result<()> {
    let queue = open(&directory).await?;
    let worker = Worker::builder(&queue)
        .state(directory)
        .handler("fetch", fetch)
        .handler("count", count)
        .handler("join", join)
        .handler("mail", mail)
        .build()?;
    worker.run().await?;
    Ok(())
}

async fn parent() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().to_path_buf();
    // A page has as many words as its number, and one more.
    let book: Vec<String> = (0..PAGES).map(|page| vec!["word"; page + 1].join(" ")).collect();
    fs::write(path.join("book.txt"), book.join("\n"))?;
    let queue = open(&path).await?;
    let added = queue.add_flow(flow()?).await?;
    // Whoever adds it again, here or elsewhere, adds nothing.
    queue.add_flow(flow()?).await?;
    let start = || Command::new(env::current_exe()?).env("PIPELINE", &path).kill_on_drop(true).spawn();
    let _workers: Vec<Child> = (0..3).map(|_| start()).collect::<std::io::Result<_>>()?;

    let broken = queue.wait_flow(added.flow(), |standing| println!("{standing}")).await;
    let error = broken.err().ok_or("a damaged page was counted")?;
    println!("\n{error}\n");
    if !error.to_string().contains("\"page 42\"") || !error.to_string().contains("page 42 is damaged") {
        return Err("it does not say what is wrong".into());
    }

    fs::write(path.join("repaired"), "")?;
    let retried = queue.change_flow(added.flow(), Verb::Retry, false).await?;
    let standing = queue.wait_flow(added.flow(), |_| ()).await?;
    let mail: String = queue.wait(added.get("mail").ok_or("there is no mail")?).await?;
    println!("{} tasks retried: {standing}. {mail}", retried.ids.len());

    let tasks = queue.page(&added.flow().selector(), Order::Oldest, 1_000, false).await?.tasks;
    let done = tasks.iter().filter(|stored| stored.task.state == State::Done).count();
    let runs: u32 = tasks.iter().map(|stored| stored.task.token.attempt).sum();
    if (done, runs as usize, retried.ids.len()) != (PAGES + 3, PAGES + 4, 3) {
        return Err(format!("{done} tasks are done, in {runs} runs").into());
    }
    if !mail.contains(&format!("{} words", PAGES * (PAGES + 1) / 2)) {
        return Err("the words were not all counted".into());
    }
    Ok(())
}
