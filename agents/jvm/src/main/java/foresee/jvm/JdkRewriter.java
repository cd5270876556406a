package foresee.jvm;

import java.lang.instrument.Instrumentation;
import java.lang.instrument.UnmodifiableClassException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.ForkJoinWorkerThread;
import java.util.concurrent.Phaser;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassVisitor;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.Label;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;

/**
 * Steps in a few classes of the JDK that order threads, where the program does not call them itself, or calls them through classes
 * of its own: threads, pools, tasks, futures, latches, barriers. Only calls are inserted; no method or field is added.
 */
final class JdkRewriter {
    private static final String CONCURRENT = "java/util/concurrent/";
    private static final String THREAD = "java/lang/Thread";
    private static final String PROCESS = "java/lang/ProcessBuilder";
    private static final String CONSTRUCTOR = "java/lang/reflect/Constructor";
    private static final String VIRTUAL = "java/lang/VirtualThread";
    private static final String COMPLETABLE = CONCURRENT + "CompletableFuture";
    private static final String TASK = CONCURRENT + "ForkJoinTask";
    private static final String FORK_JOIN = CONCURRENT + "ForkJoinPool";
    private static final String COUNTED = CONCURRENT + "CountedCompleter";
    private static final String FUTURE = CONCURRENT + "FutureTask";

    /** Classes that are rewritten with those that are nested in them. */
    private static final List<String> FAMILIES = List.of(COMPLETABLE, TASK, FORK_JOIN, CONCURRENT + "SubmissionPublisher");
    private static final List<String> SINGLE = List.of(THREAD, FUTURE, COUNTED, CONCURRENT + "ThreadPoolExecutor", CONCURRENT + "ScheduledThreadPoolExecutor",
            CONCURRENT + "CountDownLatch", CONCURRENT + "CyclicBarrier", CONCURRENT + "Phaser", CONCURRENT + "Exchanger", CONCURRENT + "Semaphore", "java/util/Timer", "java/util/TimerThread", PROCESS, CONSTRUCTOR);
    /** Classes of later versions. */
    private static final List<String> LATER = List.of(VIRTUAL, CONCURRENT + "ThreadPerTaskExecutor");

    /** Methods in which the program asks whether a task has ended. */
    private static final Set<String> ASKING = Set.of("isDone", "isCancelled", "isCompletedAbnormally", "isCompletedNormally", "getException", "state");

    private static final Set<String> rewritten = new HashSet<>();

    private JdkRewriter() {}

    /**
     * Loads what the agent itself uses of these classes, and this class: what is loaded while another class is transformed is not
     * transformed.
     */
    static void prepare() {
        for (Class<?> type : List.of(ForkJoinPool.class, ForkJoinWorkerThread.class, Phaser.class)) {
            isMeant(type.getName());
        }
    }

    /** Says which of the classes are loaded and have not been rewritten. */
    static void tellMissed(Class<?>[] loaded) {
        for (Class<?> type : loaded) {
            String name = type.getName().replace('.', '/');
            if (type.getClassLoader() == null && isMeant(name) && !isRewritten(name)) {
                Log.unordered("the JDK's class " + type.getName() + " was not transformed");
            }
        }
    }

    private static boolean isRewritten(String name) {
        synchronized (rewritten) {
            return rewritten.contains(name);
        }
    }

    static boolean isMeant(String name) {
        int nested = name.indexOf('$');
        return nested < 0 ? SINGLE.contains(name) || LATER.contains(name) || FAMILIES.contains(name) : FAMILIES.contains(name.substring(0, nested));
    }

    /** Rewrites those of the classes that are loaded already; others come when they are needed. */
    static void retransform(Instrumentation instrumentation) {
        List<Class<?>> loaded = new ArrayList<>();
        for (Class<?> type : instrumentation.getAllLoadedClasses()) {
            if (type.getClassLoader() == null && isMeant(type.getName().replace('.', '/'))) {
                loaded.add(type);
            }
        }
        try {
            instrumentation.retransformClasses(loaded.toArray(new Class<?>[0]));
        } catch (UnmodifiableClassException | LinkageError e) {
            Log.unordered("classes of the JDK were not transformed: " + e);
        }
    }

    static byte[] rewrite(String type, byte[] bytes) {
        byte[] changed = changed(type, bytes);
        synchronized (rewritten) {
            rewritten.add(type);
        }
        return changed;
    }

    private static byte[] changed(String type, byte[] bytes) {
        ClassReader reader = new ClassReader(bytes);
        ClassWriter writer = new ClassWriter(reader, ClassWriter.COMPUTE_MAXS);
        reader.accept(new ClassVisitor(Opcodes.ASM9, writer) {
            @Override
            public MethodVisitor visitMethod(int access, String name, String descriptor, String signature, String[] exceptions) {
                MethodVisitor next = super.visitMethod(access, name, descriptor, signature, exceptions);
                return (access & (Opcodes.ACC_ABSTRACT | Opcodes.ACC_NATIVE)) != 0 ? next : rewrite(type, access, name, descriptor, next);
            }
        }, 0);
        return writer.toByteArray();
    }

    private static MethodVisitor rewrite(String type, int access, String name, String descriptor, MethodVisitor next) {
        boolean isPublic = (access & Opcodes.ACC_PUBLIC) != 0 && !name.startsWith("<");
        boolean isStatic = (access & Opcodes.ACC_STATIC) != 0;
        if (type.startsWith(CONCURRENT)) {
            String simple = type.substring(CONCURRENT.length());
            int nested = simple.indexOf('$');
            return switch (nested < 0 ? simple : simple.substring(0, nested)) {
                case "ThreadPoolExecutor" -> pool(name, descriptor, isPublic, next);
                case "ScheduledThreadPoolExecutor" -> name.equals("delayedExecute") || name.equals("reExecutePeriodic") ? entry(next, "post", 1) : next;
                case "ThreadPerTaskExecutor" -> switch (name) {
                    case "taskComplete" -> entry(next, "post", 0);
                    case "awaitTermination", "isTerminated" -> descriptor.endsWith(")Z") ? answer(next) : next;
                    default -> next;
                };
                case "FutureTask" -> futureTask(name, isPublic && descriptor.startsWith("()") && isWait(name) ? waiting(next) : next);
                case "CompletableFuture" -> completable(nested >= 0 || isStatic, simple.endsWith("$Signaller"), name,
                        isPublic && nested < 0 && descriptor.startsWith("()") && isWait(name) ? waiting(next) : next);
                case "ForkJoinTask" -> task(nested >= 0, isStatic, name, descriptor, isPublic && nested < 0 && descriptor.startsWith("()") && isWait(name) ? waiting(next) : next);
                case "ForkJoinPool" -> forkJoin(nested >= 0, name, descriptor, isPublic && !isStatic, next);
                case "CountedCompleter" -> pending(status(name, next));
                case "CountDownLatch" -> switch (name) {
                    case "countDown" -> entry(next, "post", 0);
                    case "await" -> descriptor.endsWith(")Z") ? answer(next) : waiting(exit(next, "look"));
                    case "getCount" -> exit(next, "miss");
                    default -> next;
                };
                case "CyclicBarrier" -> switch (name) {
                    case "await" -> around(entry(descriptor.startsWith("()") ? waiting(next) : next, "arrives", 0), "look");
                    case "dowait" -> calls(timeouts(next), "java/lang/Runnable", "run", true);
                    case "reset" -> entry(next, "post", 0);
                    case "isBroken", "getNumberWaiting" -> exit(next, "miss");
                    default -> next;
                };
                case "Phaser" -> phaser(name, isPublic, next);
                case "Exchanger" -> name.equals("exchange") ? around(entry(timeouts(next), "post", 0), "look") : next;
                case "Semaphore" -> nested < 0 ? semaphore(name, descriptor, next) : next;
                case "SubmissionPublisher" -> isPublic && nested < 0 && !isStatic || name.equals("consume") ? global(next) : next;
                default -> next;
            };
        }
        if (type.equals(CONSTRUCTOR)) {
            return name.equals("newInstance") ? sharing(next) : next;
        }
        if (type.equals("java/util/Timer")) {
            return isPublic ? global(next) : name.equals("sched") ? entry(next, "post", 1) : next;
        }
        if (type.equals("java/util/TimerThread")) {
            return name.equals("mainLoop") ? worker(next) : next;
        }
        if (type.equals(PROCESS)) {
            boolean isStart = name.equals("start") && descriptor.startsWith("([");
            return isStart ? command(entry(next, "foresee/jvm/Children", "starting", "(Ljava/lang/ProcessBuilder;)V", 0)) : next;
        }
        // A virtual thread's plain start calls the other one.
        boolean isPlainStart = type.equals(THREAD) && descriptor.equals("()V");
        if (name.equals("start") && (isPlainStart || descriptor.startsWith("(Ljdk/internal/vm/ThreadContainer;"))) {
            return entry(next, "foresee/jvm/Threads", "starting", "(Ljava/lang/Thread;)V", 0);
        }
        if (name.equals("exit") && descriptor.equals("()V")) {
            return entry(next, "foresee/jvm/Threads", "ending", "(Ljava/lang/Thread;)V", 0);
        }
        if (name.equals("interrupt") && descriptor.equals("()V")) {
            return entry(next, "foresee/jvm/Threads", "interrupting", "(Ljava/lang/Thread;)V", 0);
        }
        return next;
    }

    private static boolean isWait(String name) {
        return name.equals("get") || name.equals("join");
    }

    /** The method may wait for ever. */
    private static MethodVisitor waiting(MethodVisitor next) {
        return entry(next, "waits", 0);
    }

    /** Shares what the method returns: the JDK may keep it. */
    private static MethodVisitor sharing(MethodVisitor next) {
        return new MethodVisitor(Opcodes.ASM9, next) {
            @Override
            public void visitInsn(int opcode) {
                if (opcode == Opcodes.ARETURN) {
                    super.visitInsn(Opcodes.DUP);
                    super.visitMethodInsn(Opcodes.INVOKESTATIC, CodeRewriter.LOCAL, "share", "(Ljava/lang/Object;)V", false);
                }
                super.visitInsn(opcode);
            }
        };
    }

    private static MethodVisitor pool(String name, String descriptor, boolean isPublic, MethodVisitor next) {
        return switch (name) {
            case "execute" -> entry(next, "post", 1);
            case "processWorkerExit", "tryTerminate" -> entry(next, "post", 0);
            // Wrappers around pools are called in their place.
            case "awaitTermination", "isTerminated" -> answer(next);
            case "runWorker" -> worker(next);
            case "getActiveCount", "getCompletedTaskCount", "getTaskCount", "getPoolSize", "getLargestPoolSize", "getQueue", "toString" -> exit(next, "miss");
            default -> next;
        };
    }

    private static MethodVisitor futureTask(String name, MethodVisitor next) {
        MethodVisitor seen = reads(timeouts(next), FUTURE, "state", "I", ASKING.contains(name) ? "stateAsked" : "state");
        return switch (name) {
            case "set", "setException", "cancel" -> entry(seen, "post", 0);
            case "run", "runAndReset" -> entry(seen, "look", 0);
            default -> seen;
        };
    }

    private static MethodVisitor completable(boolean isNested, boolean isSignaller, String name, MethodVisitor next) {
        // A thread that waits has learnt nothing as long as there is no result; elsewhere the program continues in
        // another way.
        boolean isWaiting = switch (name) {
            case "get", "join", "waitingGet", "timedGet", "isReleasable", "block", "postComplete" -> true;
            default -> false;
        };
        MethodVisitor seen = reads(isNested ? next : timeouts(next), COMPLETABLE, "result", "Ljava/lang/Object;", isWaiting ? "resultSeen" : "result");
        return switch (name) {
            case "internalComplete", "completeNull", "completeValue", "completeThrowable", "completeRelay", "obtrudeValue", "obtrudeException" ->
                isNested ? seen : entry(seen, "post", 0);
            // Each completion posts at itself when it is made, as it is a task. One that only wakes a thread hands nothing over.
            case "tryFire", "run" -> isNested && !isSignaller ? entry(seen, "look", 0) : seen;
            default -> seen;
        };
    }

    private static MethodVisitor status(String name, MethodVisitor next) {
        return reads(next, TASK, "status", "I", ASKING.contains(name) ? "statusAsked" : "status");
    }

    /** The method ends when all tasks that it was given have ended. */
    private static MethodVisitor ended(MethodVisitor next, String descriptor) {
        boolean isPair = descriptor.startsWith("(L" + TASK + ";");
        return new AtReturn(next, () -> {
            for (int local = 0; local < (isPair ? 2 : 1); local++) {
                next.visitVarInsn(Opcodes.ALOAD, local);
                order(next, isPair ? "look" : "lookAll", "(Ljava/lang/Object;)V");
            }
        });
    }

    private static MethodVisitor task(boolean isNested, boolean isStatic, String name, String descriptor, MethodVisitor next) {
        if (isNested) {
            return status(name, next);
        }
        MethodVisitor seen = status(name, isStatic ? next : timeouts(next));
        return switch (name) {
            case "<init>" -> exit(seen, "post");
            case "fork", "casStatus", "getAndBitwiseOrStatus" -> entry(seen, "post", 0);
            case "doExec" -> around(entry(seen, "execBegin", 0), "execEnd");
            // They may have executed the task themselves.
            case "join", "get", "invoke", "quietlyJoin", "quietlyInvoke" -> exit(seen, "look");
            case "invokeAll" -> ended(seen, descriptor);
            case "helpQuiesce" -> exitStatic(seen);
            default -> seen;
        };
    }

    private static MethodVisitor forkJoin(boolean isNested, String name, String descriptor, boolean isAsked, MethodVisitor next) {
        MethodVisitor seen = status(name, next);
        if (isNested) {
            return seen;
        }
        boolean takesTask = descriptor.startsWith("(L" + TASK + ";");
        return switch (name) {
            case "invoke", "execute", "submit", "externalSubmit", "lazySubmit" -> takesTask ? entry(seen, "post", 1) : seen;
            case "deregisterWorker" -> entry(seen, "post", 0);
            case "awaitQuiescence" -> descriptor.endsWith(")Z") ? answer(entry(seen, "helping", 0)) : seen;
            case "awaitTermination", "isTerminated", "isQuiescent" -> descriptor.endsWith(")Z") ? answer(seen) : seen;
            case "close" -> exit(seen, "look");
            case "getActiveThreadCount", "getRunningThreadCount", "getQueuedTaskCount", "getQueuedSubmissionCount", "hasQueuedSubmissions",
                 "getStealCount", "getPoolSize", "toString" -> isAsked ? exit(seen, "miss") : seen;
            default -> seen;
        };
    }

    private static MethodVisitor phaser(String name, boolean isPublic, MethodVisitor next) {
        MethodVisitor advancing = calls(isPublic ? timeouts(next) : next, CONCURRENT + "Phaser", "onAdvance", false);
        return switch (name) {
            case "arrive", "arriveAndDeregister", "forceTermination", "register", "bulkRegister" -> isPublic ? entry(advancing, "post", 0) : advancing;
            case "arriveAndAwaitAdvance" -> around(entry(waiting(advancing), "post", 0), "look");
            case "awaitAdvance", "awaitAdvanceInterruptibly" -> around(waiting(advancing), "look");
            case "getPhase", "getRegisteredParties", "getArrivedParties", "getUnarrivedParties", "isTerminated" -> exit(advancing, "miss");
            default -> advancing;
        };
    }

    /** The number of permits is the first argument, or one. */
    private static MethodVisitor semaphore(String name, String descriptor, MethodVisitor next) {
        boolean hasNumber = descriptor.startsWith("(I");
        Runnable number = () -> {
            if (hasNumber) {
                next.visitVarInsn(Opcodes.ILOAD, 1);
            } else {
                next.visitInsn(Opcodes.ICONST_1);
            }
        };
        Runnable semaphore = () -> next.visitVarInsn(Opcodes.ALOAD, 0);
        String step = switch (name) {
            case "<init>" -> hasNumber ? "made" : null;
            case "acquire", "acquireUninterruptibly" -> "lowered";
            case "tryAcquire" -> "tried";
            case "release" -> "raising";
            case "drainPermits", "reducePermits", "availablePermits" -> "counted";
            default -> null;
        };
        if (step == null) {
            return next;
        }
        return switch (step) {
            case "raising" -> new MethodVisitor(Opcodes.ASM9, next) {
                @Override
                public void visitCode() {
                    super.visitCode();
                    semaphore.run();
                    number.run();
                    order(mv, step, "(Ljava/lang/Object;I)V");
                }
            };
            case "tried" -> new AtReturn(next, () -> {
                next.visitInsn(Opcodes.DUP);
                semaphore.run();
                number.run();
                order(next, step, "(ZLjava/lang/Object;I)V");
            });
            case "counted" -> new AtReturn(next, () -> {
                semaphore.run();
                order(next, step, "(Ljava/lang/Object;)V");
            });
            default -> new AtReturn(next, () -> {
                semaphore.run();
                number.run();
                order(next, step, "(Ljava/lang/Object;I)V");
            });
        };
    }

    private static void order(MethodVisitor code, String step, String descriptor) {
        code.visitMethodInsn(Opcodes.INVOKESTATIC, "foresee/jvm/Order", step, descriptor, false);
    }

    /** A step on a local variable, first of all. */
    private static MethodVisitor entry(MethodVisitor next, String step, int local) {
        return entry(next, "foresee/jvm/Order", step, "(Ljava/lang/Object;)V", local);
    }

    /** Calls a method of the runtime with a local variable, first of all. */
    private static MethodVisitor entry(MethodVisitor next, String owner, String name, String descriptor, int local) {
        return new MethodVisitor(Opcodes.ASM9, next) {
            @Override
            public void visitCode() {
                super.visitCode();
                super.visitVarInsn(Opcodes.ALOAD, local);
                super.visitMethodInsn(Opcodes.INVOKESTATIC, owner, name, descriptor, false);
            }
        };
    }

    /** Code before every return. */
    private static class AtReturn extends MethodVisitor {
        private final Runnable code;

        AtReturn(MethodVisitor next, Runnable code) {
            super(Opcodes.ASM9, next);
            this.code = code;
        }

        @Override
        public void visitInsn(int opcode) {
            if (opcode >= Opcodes.IRETURN && opcode <= Opcodes.RETURN) {
                code.run();
            }
            super.visitInsn(opcode);
        }
    }

    /** The method ends with a step on its receiver. */
    private static MethodVisitor exit(MethodVisitor next, String step) {
        return new AtReturn(next, () -> {
            next.visitVarInsn(Opcodes.ALOAD, 0);
            order(next, step, "(Ljava/lang/Object;)V");
        });
    }

    private static MethodVisitor exitStatic(MethodVisitor next) {
        return new AtReturn(next, () -> order(next, "quiet", "()V"));
    }

    /** The method returns whether something on its receiver has happened. */
    private static MethodVisitor answer(MethodVisitor next) {
        return new AtReturn(next, () -> {
            next.visitInsn(Opcodes.DUP);
            next.visitVarInsn(Opcodes.ALOAD, 0);
            order(next, "answered", "(ZLjava/lang/Object;)V");
        });
    }

    /** A thread that gives up has learnt that nothing has happened yet. */
    private static MethodVisitor timeouts(MethodVisitor next) {
        return new MethodVisitor(Opcodes.ASM9, next) {
            @Override
            public void visitTypeInsn(int opcode, String type) {
                if (opcode == Opcodes.NEW && type.equals(CONCURRENT + "TimeoutException")) {
                    super.visitVarInsn(Opcodes.ALOAD, 0);
                    order(mv, "miss", "(Ljava/lang/Object;)V");
                }
                super.visitTypeInsn(opcode, type);
            }
        };
    }

    /** Each read of a field is followed by a step with the object and the value. */
    private static MethodVisitor reads(MethodVisitor next, String type, String field, String descriptor, String step) {
        return new MethodVisitor(Opcodes.ASM9, next) {
            @Override
            public void visitFieldInsn(int opcode, String owner, String name, String read) {
                boolean isIt = opcode == Opcodes.GETFIELD && name.equals(field) && read.equals(descriptor) && isOf(owner, type);
                if (isIt) {
                    super.visitInsn(Opcodes.DUP);
                }
                super.visitFieldInsn(opcode, owner, name, read);
                if (isIt) {
                    super.visitInsn(Opcodes.DUP_X1);
                    order(mv, step, "(Ljava/lang/Object;" + descriptor + ")V");
                }
            }
        };
    }

    /** Whether a field that code finds in the owner is one of the type: tasks have subclasses in the JDK, and so do their fields' owners. */
    private static boolean isOf(String owner, String type) {
        return owner.equals(type) || type.equals(TASK) && owner.startsWith(CONCURRENT);
    }

    /** What is started is what the agent makes of the command; the program does not see it. */
    private static MethodVisitor command(MethodVisitor next) {
        return new MethodVisitor(Opcodes.ASM9, next) {
            @Override
            public void visitFieldInsn(int opcode, String owner, String name, String descriptor) {
                super.visitFieldInsn(opcode, owner, name, descriptor);
                if (opcode == Opcodes.GETFIELD && name.equals("command")) {
                    super.visitMethodInsn(Opcodes.INVOKESTATIC, "foresee/jvm/Children", "command", "(Ljava/util/List;)Ljava/util/List;", false);
                }
            }
        };
    }

    /** How many parts a task still waits for: a step before it is read or changed, and one after. */
    private static MethodVisitor pending(MethodVisitor next) {
        return new MethodVisitor(Opcodes.ASM9, next) {
            @Override
            public void visitFieldInsn(int opcode, String owner, String name, String descriptor) {
                boolean isIt = opcode == Opcodes.GETFIELD && name.equals("pending");
                if (isIt) {
                    super.visitInsn(Opcodes.DUP);
                    order(mv, "post", "(Ljava/lang/Object;)V");
                    super.visitInsn(Opcodes.DUP);
                }
                super.visitFieldInsn(opcode, owner, name, descriptor);
                if (isIt) {
                    super.visitInsn(Opcodes.SWAP);
                    order(mv, "look", "(Ljava/lang/Object;)V");
                }
            }
        };
    }

    /** A call of the program's code in the name of all threads: it comes after what they posted, and before they go on. */
    private static MethodVisitor calls(MethodVisitor next, String type, String method, boolean isInterface) {
        return new MethodVisitor(Opcodes.ASM9, next) {
            @Override
            public void visitMethodInsn(int opcode, String owner, String name, String descriptor, boolean isInterfaces) {
                boolean isIt = owner.equals(type) && name.equals(method);
                step(isIt, "look");
                super.visitMethodInsn(opcode, owner, name, descriptor, isInterfaces);
                step(isIt, "post");
            }

            private void step(boolean isIt, String step) {
                if (isIt) {
                    super.visitVarInsn(Opcodes.ALOAD, 0);
                    order(mv, step, "(Ljava/lang/Object;)V");
                }
            }
        };
    }

    /** A worker comes after the submission of each task, and others may learn from the pool that it has ended. */
    private static MethodVisitor worker(MethodVisitor next) {
        return new MethodVisitor(Opcodes.ASM9, next) {
            @Override
            public void visitMethodInsn(int opcode, String owner, String name, String descriptor, boolean isInterface) {
                boolean isRun = (owner.equals("java/lang/Runnable") || owner.equals("java/util/TimerTask")) && name.equals("run");
                if (isRun) {
                    super.visitInsn(Opcodes.DUP);
                    super.visitInsn(Opcodes.DUP);
                    super.visitVarInsn(Opcodes.ALOAD, 0);
                    order(mv, "begins", "(Ljava/lang/Object;Ljava/lang/Object;)V");
                }
                super.visitMethodInsn(opcode, owner, name, descriptor, isInterface);
                if (isRun) {
                    order(mv, "post", "(Ljava/lang/Object;)V");
                    super.visitVarInsn(Opcodes.ALOAD, 0);
                    order(mv, "post", "(Ljava/lang/Object;)V");
                    order(mv, "ends", "()V");
                }
            }
        };
    }

    /** The method ends with a step on its receiver, even if it throws. */
    private static MethodVisitor around(MethodVisitor next, String step) {
        return new Around(next, () -> { }, () -> {
            next.visitVarInsn(Opcodes.ALOAD, 0);
            order(next, step, "(Ljava/lang/Object;)V");
        }, true);
    }

    /** The whole method is a call on the global channel. */
    private static MethodVisitor global(MethodVisitor next) {
        Runnable leave = () -> next.visitMethodInsn(Opcodes.INVOKESTATIC, "foresee/jvm/Calls", "leave", "()V", false);
        return new Around(next, () -> next.visitMethodInsn(Opcodes.INVOKESTATIC, "foresee/jvm/Calls", "enter", "()V", false), leave, false);
    }

    /** Code at the beginning, and code at each end of a method. */
    private static final class Around extends AtReturn {
        private final Label start = new Label();
        private final Runnable before;
        private final Runnable after;
        private final boolean needsReceiver;

        Around(MethodVisitor next, Runnable before, Runnable after, boolean needsReceiver) {
            super(next, after);
            this.before = before;
            this.after = after;
            this.needsReceiver = needsReceiver;
        }

        @Override
        public void visitCode() {
            super.visitCode();
            before.run();
            super.visitLabel(start);
        }

        @Override
        public void visitMaxs(int stack, int locals) {
            Label end = new Label();
            super.visitLabel(end);
            super.visitTryCatchBlock(start, end, end, null);
            Object[] known = needsReceiver ? new Object[] {"java/lang/Object"} : new Object[0];
            super.visitFrame(Opcodes.F_FULL, known.length, known, 1, new Object[] {"java/lang/Throwable"});
            after.run();
            super.visitInsn(Opcodes.ATHROW);
            super.visitMaxs(stack, locals);
        }
    }
}
