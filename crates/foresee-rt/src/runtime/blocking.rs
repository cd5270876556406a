//! Calls that may block: the token is given up around them. Others that are not listed here cost their neighbours two
//! milliseconds (see `token`).

use super::next::real;
use super::{access, enter, hook, leave, standing_aside, step_aside};

macro_rules! waits {
    ($($name:ident($($arg:ident),*);)*) => { $(
        #[cfg_attr(foresee_object, unsafe(no_mangle))]
        extern "C" fn $name($($arg: usize),*) -> isize {
            standing_aside!(real!($name($($arg => usize),*) -> isize))
        }
    )* };
}

waits! {
    sleep(a);
    usleep(a);
    nanosleep(a, b);
    clock_nanosleep(a, b, c, d);
    sched_yield();
    poll(a, b, c);
    ppoll(a, b, c, d);
    select(a, b, c, d, e);
    epoll_wait(a, b, c, d);
    accept(a, b, c);
    accept4(a, b, c, d);
    connect(a, b, c);
    recvmsg(a, b, c);
    sendmsg(a, b, c);
    wait(a);
    waitpid(a, b, c);
    pause();
    sigwait(a, b);
    sigsuspend(a);
    flock(a, b);
    fsync(a);
}

hook! {
    read => read_into, "rcx";
    recv => recv_into, "r8";
    pread => pread_into, "r8";
    pread64 => pread_into, "r8";
    write => write_from, "rcx";
    send => send_from, "r8";
}

/// Lets the kernel fill a buffer.
fn filled(buffer: usize, size: usize, pc: usize, act: impl FnOnce() -> isize) -> isize {
    let t = enter();
    if t.is_null() {
        return act();
    }
    // SAFETY: the program asked for this.
    unsafe {
        access::before_write(t, buffer, size);
        step_aside(t);
        let n = act();
        if n > 0 && !enter().is_null() {
            access::before_write(t, buffer, n as usize);
            access::written(t, buffer, n as usize, pc);
            leave(t);
        }
        n
    }
}

/// Lets the kernel take a buffer.
fn taken(buffer: usize, size: usize, pc: usize, act: impl FnOnce() -> isize) -> isize {
    let t = enter();
    if t.is_null() {
        return act();
    }
    // SAFETY: the program asked for this.
    unsafe {
        access::settle(t);
        access::range(t, buffer, size, pc, false);
        step_aside(t);
    }
    act()
}

extern "C" fn read_into(file: i32, buffer: usize, size: usize, pc: usize) -> isize {
    filled(buffer, size, pc, || real!(read(file => i32, buffer => usize, size => usize) -> isize))
}

extern "C" fn recv_into(file: i32, buffer: usize, size: usize, flags: i32, pc: usize) -> isize {
    filled(
        buffer,
        size,
        pc,
        || real!(recv(file => i32, buffer => usize, size => usize, flags => i32) -> isize),
    )
}

extern "C" fn pread_into(file: i32, buffer: usize, size: usize, at: usize, pc: usize) -> isize {
    filled(
        buffer,
        size,
        pc,
        || real!(pread64(file => i32, buffer => usize, size => usize, at => usize) -> isize),
    )
}

extern "C" fn write_from(file: i32, buffer: usize, size: usize, pc: usize) -> isize {
    taken(buffer, size, pc, || real!(write(file => i32, buffer => usize, size => usize) -> isize))
}

extern "C" fn send_from(file: i32, buffer: usize, size: usize, flags: i32, pc: usize) -> isize {
    taken(
        buffer,
        size,
        pc,
        || real!(send(file => i32, buffer => usize, size => usize, flags => i32) -> isize),
    )
}
