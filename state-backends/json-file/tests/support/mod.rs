//! The JSON file as a kind of state in a file, and what the tests of such states share.
#![allow(dead_code, unused_imports, reason = "each test program uses a part")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    any::Any,
    fs::{self, File},
    path::{Path, PathBuf},
    time::Duration,
};

use interval_queue_contract::StateError;
use interval_queue_json_file::{Builder, JsonFileState, JsonFileStore};
use interval_queue_test_support::files;
pub(crate) use interval_queue_test_support::files::*;

pub(crate) struct JsonFile;

impl InFile for JsonFile {
    type State = JsonFileState;
    const FILE: &'static str = "state.json";
    const SURVIVORS: usize = 1;

    async fn open_at(path: &Path, lock_timeout: Duration) -> Result<JsonFileState, StateError> {
        opened(JsonFileStore::builder(path).lock_timeout(lock_timeout)).await
    }

    fn path(state: &JsonFileState) -> &Path {
        state.path()
    }

    fn hold(path: &Path) -> Box<dyn Any> {
        Box::new(locked(&path.with_file_name("state.json.lock")))
    }

    fn is_whole(path: &Path) -> bool {
        let is_json = || serde_json::from_slice::<serde_json::Value>(&fs::read(path).unwrap()).is_ok();
        // Whoever reads without the lock may see a part of two texts, and rarely does.
        is_json() || {
            let _held = Self::hold(path);
            is_json()
        }
    }

    fn plant(path: &Path, record: &str) {
        let text = fs::read_to_string(path).unwrap();
        fs::write(path, text.replace("\"mail\":", &format!("\"odd\": {record},\n    \"mail\":"))).unwrap();
    }

    fn records(path: &Path) -> String {
        fs::read_to_string(path).unwrap()
    }
}

/// Takes the lock as another process would: with a descriptor of its own.
pub(crate) fn locked(lock: &Path) -> File {
    let file = File::options().read(true).write(true).open(lock).unwrap();
    interval_queue_store::files::lock::lock(&file).unwrap();
    file
}

/// The state in a file that is opened so.
pub(crate) async fn opened(builder: Builder) -> Result<JsonFileState, StateError> {
    JsonFileState::on(&builder.open().await?).await
}

/// An open state file in `directory` with the queue `mail`.
pub(crate) async fn state_in(directory: &Path) -> (JsonFileState, PathBuf) {
    files::state_in::<JsonFile>(directory).await
}
