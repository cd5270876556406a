package foresee.jvm;

/** The operations of records. The reader, {@code foresee-capture/src/jvm/record.rs}, has the same list. */
final class Op {
    /** Added to an access of a volatile field. */
    static final int VOLATILE = 2;

    static final int READ = 1;
    static final int WRITE = 2;
    static final int RMW = 5;
    /** The value that the read-modify-write found that comes next. */
    static final int OLD = 6;
    /** Another thread can reach the object that comes next since this one was shared. */
    static final int SHARED_WITH = 7;
    /** An object, and its class. With a type: until now, only this thread could reach it. */
    static final int OBJECT = 8;
    /** A ticket whose step could not be recorded. */
    static final int LOST = 9;

    static final int ACQUIRE = 10;
    static final int RELEASE = 11;
    static final int REQUEST = 12;
    static final int TRY = 13;
    static final int TRY_FOR = 14;
    /** An attempt failed; its value says whether it was one to share the lock. */
    static final int BUSY = 15;
    static final int ACQUIRE_SHARED = 16;
    static final int RELEASE_SHARED = 17;
    static final int REQUEST_SHARED = 18;

    static final int FORK = 20;
    static final int JOIN = 21;
    static final int BEGIN = 22;
    static final int END = 23;

    /** A thread begins with a task that any other could have executed, and ends it. With an object, that executes one after the other, in order if the value is 1; with the value 2, it does its work after others. */
    static final int TASK_BEGIN = 24;
    static final int TASK_END = 25;
    /** A thread is about to wait for what others post at the object, or give to it; with the value 1, for room in it. */
    static final int WAITS = 26;

    static final int WAIT_BEGIN = 30;
    static final int WAIT_END = 31;
    static final int NOTIFY = 32;
    static final int NOTIFY_ALL = 33;

    /** A step on something that orders threads: all of them are in one order. */
    static final int CHANNEL = 40;
    /** A step that comes after all posts so far at the object. */
    static final int LOOK = 41;
    static final int INITIALISED = 42;
    static final int INITIALISATION_SEEN = 43;
    /** A step that comes before all looks from now on at the object. */
    static final int POST = 44;
    /** A look that found that something has not happened, so it comes before all posts from now on. */
    static final int MISS = 45;

    /** A thread is about to hand something to the object of a channel; without a type, only to change that object. */
    static final int GIVE = 46;
    /** A thread got something from the object of a channel. */
    static final int GOT = 47;
    /** The same, and it is no longer there. */
    static final int REMOVED = 48;
    /** A thread has learnt of all changes of the object of a channel. */
    static final int TOLD = 49;

    /** A plain collection of the JDK is read or changed; the value is 1 if nothing is learnt by a change. */
    static final int COLLECTION_READ = 50;
    static final int COLLECTION_WRITE = 51;

    /** A semaphore is made, with so many permits; raised; lowered; looked at. */
    static final int PERMITS = 52;
    static final int RAISED = 53;
    static final int LOWERED = 54;
    static final int COUNTED = 55;
    /** A static initialiser begins. */
    static final int INITIALISING = 56;
    /** A thread has an object to itself, or shares it with others (value 1), and gives it back. Not a lock: the order is that of its channel. */
    static final int HOLD = 57;
    static final int UNHOLD = 58;
    /** A thread has the entry of a map with this key to itself, until it gives it back with the value 1. */
    static final int KEY = 59;

    /** An argument of the call that comes next. */
    static final int ARGUMENT = 60;
    static final int CALL = 61;
    static final int RETURN = 62;

    /** How the call stack has changed since the thread's last record: so many calls have returned, and then, with the first, a place called. */
    static final int STACK_CALL = 64;
    static final int STACK_RETURN = 65;
    /** The stack is too deep to be recorded, until it changes once more. */
    static final int STACK_UNKNOWN = 66;

    /** A test of the program. */
    static final int TEST_BEGIN = 70;
    static final int TEST_END = 71;

    private Op() {}
}
