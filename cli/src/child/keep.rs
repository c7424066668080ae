//! How the output of a command is kept.

pub(crate) trait Keep: Default + Send + 'static {
    fn keep(&mut self, bytes: &[u8]);

    /// Whether `keep` would block on the disk.
    fn blocks(&self, _bytes: &[u8]) -> bool {
        false
    }
}
