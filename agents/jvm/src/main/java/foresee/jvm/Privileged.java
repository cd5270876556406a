package foresee.jvm;

import java.security.AccessController;
import java.security.PrivilegedActionException;
import java.security.PrivilegedExceptionAction;

/** What the agent may do where the program that called it may not, because of a security manager. */
final class Privileged {
    interface Action<T, E extends Exception> {
        T run() throws E;
    }

    private Privileged() {}

    @SuppressWarnings({"removal", "unchecked"})
    static <T, E extends Exception> T call(Action<T, E> action) throws E {
        try {
            return AccessController.doPrivileged((PrivilegedExceptionAction<T>) action::run);
        } catch (PrivilegedActionException e) {
            throw (E) e.getException();
        }
    }
}
