//! Has the crate built anew when a migration is added: `sqlx::migrate!` reads them at build time.

fn main() {
    println!("cargo:rerun-if-changed=../migrations");
}
