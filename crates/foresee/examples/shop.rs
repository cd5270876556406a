//! The program of the tutorial for Rust: `foresee run -- target/debug/examples/shop`.

#![allow(clippy::print_stdout)] // It talks to people.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use foresee::{Mutex, Recorder, Var};

struct Shop {
    lock: Mutex<()>,
    open: Var<bool>,
    stock: Var<i64>,
    sold: Var<i64>,
}

impl Shop {
    fn is_open(&self) -> bool {
        let _held = self.lock.lock();
        self.open.get()
    }

    fn sell(&self) {
        if self.is_open() {
            let held = self.lock.lock();
            self.stock.set(self.stock.get() - 1);
            drop(held);
            self.sold.set(self.sold.get() + 1);
        }
    }

    fn close(&self) {
        thread::sleep(Duration::from_millis(500));
        let _held = self.lock.lock();
        self.open.set(false);
    }
}

pub(crate) fn main() {
    let recorder = Recorder::new();
    let shop = Arc::new(Shop {
        lock: recorder.mutex("lock", ()),
        open: recorder.var("open", true),
        stock: recorder.var("stock", 10),
        sold: recorder.var("sold", 0),
    });
    let sellers = ["first", "second"].map(|name| {
        let shop = Arc::clone(&shop);
        let seller = recorder.spawn(name, move || shop.sell());
        // The second one comes later.
        thread::sleep(Duration::from_millis(200));
        seller
    });
    let closer = {
        let shop = Arc::clone(&shop);
        recorder.spawn("closer", move || shop.close())
    };
    sellers.into_iter().for_each(|seller| seller.join());
    closer.join();
    println!("{} left", shop.stock.get());
}
