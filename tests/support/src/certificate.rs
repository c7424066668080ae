//! A certificate for `localhost` and the authority that signed it, made by the program `openssl`.

use std::{fs, path::Path, process::Command};

/// Writes `ca.crt`, `server.crt` and `server.key`, good for one day.
pub(crate) fn make(dir: &Path) {
    let names = "basicConstraints=critical,CA:FALSE\nsubjectAltName=DNS:localhost,IP:127.0.0.1\n";
    fs::write(dir.join("server.ext"), names).expect("write server.ext");
    for words in [
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=test-ca \
         -addext basicConstraints=critical,CA:TRUE -keyout ca.key -out ca.crt",
        "req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=localhost \
         -keyout server.key -out server.csr",
        "x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 1 \
         -extfile server.ext -out server.crt",
    ] {
        let made = Command::new("openssl")
            .args(words.split_whitespace())
            .current_dir(dir)
            .output()
            .expect("run openssl");
        let says = String::from_utf8_lossy(&made.stderr);
        assert!(made.status.success(), "openssl {words}: {says}");
    }
}
