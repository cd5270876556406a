package foresee.jvm;

import java.lang.instrument.Instrumentation;
import java.lang.instrument.UnmodifiableClassException;
import java.util.ArrayList;
import java.util.List;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassVisitor;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.Label;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;

/**
 * Steps in a few methods of the JDK that the program does not call itself, or calls through classes of its own: where threads
 * begin and end, and where thread pools hand tasks over. Only calls are inserted; no method or field is added.
 */
final class JdkRewriter {
    private static final String THREAD = "java/lang/Thread";
    private static final String VIRTUAL = "java/lang/VirtualThread";
    private static final String POOL = "java/util/concurrent/ThreadPoolExecutor";
    private static final String SCHEDULED = "java/util/concurrent/ScheduledThreadPoolExecutor";
    private static final String FUTURE = "java/util/concurrent/FutureTask";
    /** Classes in which everything is in the order of the global channel. */
    private static final List<String> GLOBAL = List.of("java/util/concurrent/ForkJoinPool", "java/util/concurrent/ForkJoinTask",
            "java/util/concurrent/CompletableFuture", "java/util/Timer");

    private JdkRewriter() {}

    static boolean isMeant(String name) {
        return switch (name) {
            case THREAD, VIRTUAL, POOL, SCHEDULED, FUTURE -> true;
            default -> GLOBAL.contains(name);
        };
    }

    static void retransform(Instrumentation instrumentation) {
        List<String> names = new ArrayList<>(List.of(THREAD, POOL, SCHEDULED, FUTURE));
        if (Runtime.version().feature() >= 21) {
            names.add(VIRTUAL);
        }
        names.addAll(GLOBAL);
        for (String name : names) {
            try {
                instrumentation.retransformClasses(Class.forName(name.replace('/', '.'), false, null));
            } catch (ClassNotFoundException | UnmodifiableClassException | LinkageError e) {
                Log.unordered("the JDK's class " + name.replace('/', '.') + " was not transformed: " + e);
            }
        }
    }

    static byte[] rewrite(String type, byte[] bytes) {
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
        switch (type) {
            case THREAD, VIRTUAL -> {
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
            }
            case POOL -> {
                if (name.equals("execute")) {
                    return step(next, 1);
                }
                if (name.equals("processWorkerExit") || name.equals("tryTerminate")) {
                    return step(next, 0);
                }
                // Wrappers around pools are called in their place.
                if (name.equals("awaitTermination") || name.equals("isTerminated")) {
                    return stepAtReturn(next);
                }
                if (name.equals("runWorker")) {
                    return aroundRun(next);
                }
            }
            case SCHEDULED -> {
                if (name.equals("delayedExecute") || name.equals("reExecutePeriodic")) {
                    return step(next, 1);
                }
            }
            case FUTURE -> {
                switch (name) {
                    case "set", "setException", "cancel", "report", "run", "runAndReset" -> {
                        return step(next, 0);
                    }
                    default -> { }
                }
            }
            default -> {
                // Conditions and queues of the JDK block by way of the first of these.
                boolean isPassive = name.equals("managedBlock") || name.equals("commonPool") || name.equals("getCommonPoolParallelism");
                if ((access & Opcodes.ACC_PUBLIC) != 0 && !name.startsWith("<") && !isPassive) {
                    return global(next);
                }
            }
        }
        return next;
    }

    private static MethodVisitor step(MethodVisitor next, int local) {
        return entry(next, "foresee/jvm/Calls", "step", "(Ljava/lang/Object;)V", local);
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

    /** The method ends with a step on its receiver. */
    private static MethodVisitor stepAtReturn(MethodVisitor next) {
        return new MethodVisitor(Opcodes.ASM9, next) {
            @Override
            public void visitInsn(int opcode) {
                if (opcode >= Opcodes.IRETURN && opcode <= Opcodes.RETURN) {
                    super.visitVarInsn(Opcodes.ALOAD, 0);
                    super.visitMethodInsn(Opcodes.INVOKESTATIC, "foresee/jvm/Calls", "step", "(Ljava/lang/Object;)V", false);
                }
                super.visitInsn(opcode);
            }
        };
    }

    /** A worker takes a step on each task before it runs it. */
    private static MethodVisitor aroundRun(MethodVisitor next) {
        return new MethodVisitor(Opcodes.ASM9, next) {
            @Override
            public void visitMethodInsn(int opcode, String owner, String name, String descriptor, boolean isInterface) {
                if (owner.equals("java/lang/Runnable") && name.equals("run")) {
                    super.visitInsn(Opcodes.DUP);
                    super.visitInsn(Opcodes.DUP);
                    super.visitMethodInsn(Opcodes.INVOKESTATIC, "foresee/jvm/Calls", "step", "(Ljava/lang/Object;)V", false);
                    super.visitMethodInsn(opcode, owner, name, descriptor, isInterface);
                    super.visitMethodInsn(Opcodes.INVOKESTATIC, "foresee/jvm/Calls", "step", "(Ljava/lang/Object;)V", false);
                    return;
                }
                super.visitMethodInsn(opcode, owner, name, descriptor, isInterface);
            }
        };
    }

    /** The whole method is a call on the global channel. */
    private static MethodVisitor global(MethodVisitor next) {
        return new MethodVisitor(Opcodes.ASM9, next) {
            private final Label start = new Label();

            private void call(String name) {
                super.visitMethodInsn(Opcodes.INVOKESTATIC, "foresee/jvm/Calls", name, "()V", false);
            }

            @Override
            public void visitCode() {
                super.visitCode();
                call("enter");
                super.visitLabel(start);
            }

            @Override
            public void visitInsn(int opcode) {
                if (opcode >= Opcodes.IRETURN && opcode <= Opcodes.RETURN) {
                    call("leave");
                }
                super.visitInsn(opcode);
            }

            @Override
            public void visitMaxs(int stack, int locals) {
                Label end = new Label();
                super.visitLabel(end);
                super.visitTryCatchBlock(start, end, end, null);
                super.visitFrame(Opcodes.F_FULL, 0, null, 1, new Object[] {"java/lang/Throwable"});
                call("leave");
                super.visitInsn(Opcodes.ATHROW);
                super.visitMaxs(stack, locals);
            }
        };
    }
}
