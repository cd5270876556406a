package foresee.jvm;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.objectweb.asm.Label;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.Type;

/** The code of helpers, and the calls that get one. */
final class Helpers {
    private static final String OBJECT = "Ljava/lang/Object;";
    private static final String CALLS = "foresee/jvm/Calls";
    private static final String LOCKS = "foresee/jvm/Locks";
    private static final String THREADS = "foresee/jvm/Threads";
    private static final String LOCK = "Ljava/util/concurrent/locks/Lock;";
    private static final String CONDITION = "Ljava/util/concurrent/locks/Condition;";

    /** A helper: what makes it the same as another, its type (with the site as the last argument), and its code. */
    record Redirect(String key, String type, ClassRewriter.Body body) {
        /** Whether the call stays as it is and is only recorded: its key says why. */
        boolean isUnfollowed() {
            return body == null;
        }
    }

    /** What specifications name. */
    static Transformer.Watch watch;

    private Helpers() {}

    /** Accesses a field, once to be sure that it can be accessed, and once for real. */
    static void field(MethodVisitor code, int opcode, String owner, String field, String type) {
        boolean isStatic = opcode == Opcodes.GETSTATIC || opcode == Opcodes.PUTSTATIC;
        boolean isWrite = opcode == Opcodes.PUTFIELD || opcode == Opcodes.PUTSTATIC;
        Type value = Type.getType(type);
        int get = isStatic ? Opcodes.GETSTATIC : Opcodes.GETFIELD;
        int first = isStatic ? 0 : 1;
        int site = first + (isWrite ? value.getSize() : 0);
        int log = site + 1;
        if (isStatic && isWrite && Log.hasLocals && Escapes.mayBeLocal(type)) {
            code.visitVarInsn(Opcodes.ALOAD, first);
            code.visitMethodInsn(Opcodes.INVOKESTATIC, CodeRewriter.LOCAL, "share", "(" + OBJECT + ")V", false);
        }
        load(code, isStatic);
        code.visitFieldInsn(get, owner, field, type);
        code.visitInsn(value.getSize() == 2 ? Opcodes.POP2 : Opcodes.POP);
        if (isStatic) {
            code.visitInsn(Opcodes.ACONST_NULL);
        } else {
            code.visitVarInsn(Opcodes.ALOAD, 0);
        }
        code.visitVarInsn(Opcodes.ILOAD, site);
        code.visitMethodInsn(Opcodes.INVOKESTATIC, CodeRewriter.RT, "begin", "(" + OBJECT + "I)L" + CodeRewriter.LOG + ";", false);
        code.visitVarInsn(Opcodes.ASTORE, log);
        load(code, isStatic);
        String logged = "(" + ClassRewriter.logged(type) + ")V";
        if (isWrite) {
            code.visitVarInsn(value.getOpcode(Opcodes.ILOAD), first);
            code.visitFieldInsn(opcode, owner, field, type);
            code.visitVarInsn(Opcodes.ALOAD, log);
            code.visitVarInsn(value.getOpcode(Opcodes.ILOAD), first);
            code.visitMethodInsn(Opcodes.INVOKEVIRTUAL, CodeRewriter.LOG, "wrote", logged, false);
            code.visitInsn(Opcodes.RETURN);
        } else {
            int result = log + 1;
            code.visitFieldInsn(opcode, owner, field, type);
            code.visitVarInsn(value.getOpcode(Opcodes.ISTORE), result);
            code.visitVarInsn(Opcodes.ALOAD, log);
            code.visitVarInsn(value.getOpcode(Opcodes.ILOAD), result);
            code.visitMethodInsn(Opcodes.INVOKEVIRTUAL, CodeRewriter.LOG, "read", logged, false);
            code.visitVarInsn(value.getOpcode(Opcodes.ILOAD), result);
            code.visitInsn(value.getOpcode(Opcodes.IRETURN));
        }
    }

    private static void load(MethodVisitor code, boolean isStatic) {
        if (!isStatic) {
            code.visitVarInsn(Opcodes.ALOAD, 0);
        }
    }

    /** Pushes all arguments of a helper. */
    static void loadAll(MethodVisitor code, String type) {
        int local = 0;
        for (Type argument : Type.getArgumentTypes(type)) {
            code.visitVarInsn(argument.getOpcode(Opcodes.ILOAD), local);
            local += argument.getSize();
        }
    }

    /** Shares those arguments of a helper that may be local. */
    static void shareAll(MethodVisitor code, String type) {
        int local = 0;
        for (Type argument : Type.getArgumentTypes(type)) {
            if (Escapes.mayBeLocal(argument.getDescriptor())) {
                code.visitVarInsn(Opcodes.ALOAD, local);
                code.visitMethodInsn(Opcodes.INVOKESTATIC, CodeRewriter.LOCAL, "share", "(" + OBJECT + ")V", false);
            }
            local += argument.getSize();
        }
    }

    private static final Set<String> FILLED = Set.of("([II)V", "([JJ)V", "([DD)V", "([ZZ)V", "([BB)V", "([CC)V", "([Ljava/lang/Object;Ljava/lang/Object;)V");

    private static final Set<String> TIMED = Set.of("()V", "(J)V", "(JI)V");

    /** The helper for a call in a class, if it needs one. */
    static Redirect of(ClassRewriter in, int opcode, String owner, String name, String type, boolean isInterface) {
        boolean isStatic = opcode == Opcodes.INVOKESTATIC;
        if (owner.startsWith("[")) {
            return null;
        }
        String origin = isStatic || isInterface || Transformer.isJdk(owner) ? owner : Hierarchy.origin(in.loader, owner, name, type);
        boolean isOfSuper = opcode == Opcodes.INVOKESPECIAL;
        Call call = new Call(opcode, isOfSuper ? in.facts.name : owner, owner, origin, name, type, isInterface);
        if (isOfSuper) {
            // Not the method that a virtual call would find, so it can only be called from here.
            if (isInterface || !Transformer.isJdk(origin) || !Calls.isFollowed(origin, name)) {
                return null;
            }
            return Atomics.isMeant(origin) || origin.startsWith("java/util/concurrent/locks/Reentrant") ? call.unfollowed() : call.opaque(Calls.effect(name));
        }
        if (!isStatic) {
            if (name.equals("wait") && TIMED.contains(type)) {
                return call.to(CodeRewriter.RT, "waitFor", OBJECT);
            }
            if (type.equals("()V") && (name.equals("notify") || name.equals("notifyAll"))) {
                return call.to(CodeRewriter.RT, name.equals("notify") ? "notifyOne" : "notifyEvery", OBJECT);
            }
            boolean mayBeThread = owner.equals("java/lang/Thread") || !Transformer.isJdk(owner);
            boolean tellsEnd = name.equals("join") && (TIMED.contains(type) || type.equals("(Ljava/time/Duration;)Z"))
                    || name.equals("isAlive") && type.equals("()Z") || name.equals("getState") && type.equals("()Ljava/lang/Thread$State;");
            if (mayBeThread && tellsEnd) {
                return call.followedBy("joined");
            }
            if (mayBeThread && name.equals("isInterrupted") && type.equals("()Z")) {
                return call.answering("asked");
            }
        }
        if (!Transformer.isJdk(origin)) {
            return null;
        }
        if (Atomics.isMeant(origin)) {
            return isStatic ? null : Atomics.of(call);
        }
        if (HandleCalls.isMeant(owner)) {
            return HandleCalls.of(call);
        }
        if (isStatic) {
            boolean isElements = owner.equals("java/lang/System") || owner.equals("java/util/Arrays");
            return in.isLeftOut && isElements ? null : ofStatic(call);
        }
        if (origin.startsWith("java/util/concurrent/locks/")) {
            Redirect lock = ofLock(call);
            if (lock != null) {
                return lock;
            }
        }
        if (Calls.isUnknown(origin)) {
            return call.unfollowed();
        }
        return Calls.isFollowed(origin, name) ? call.opaque(Calls.effect(name)) : null;
    }

    private static Redirect ofStatic(Call call) {
        String full = call.owner + "." + call.name;
        return switch (full) {
            case "java/lang/Thread.interrupted" -> call.to(CALLS, "interrupted", "");
            case "java/lang/Thread.sleep" -> call.type.endsWith(")V") && !call.type.contains("Duration") ? call.to(CALLS, "sleep", "") : null;
            case "java/lang/System.arraycopy" -> call.to("foresee/jvm/Arraycopy", "copy", "");
            case "java/util/Arrays.fill" -> FILLED.contains(call.type) ? call.to("foresee/jvm/Arraycopy", "fill", "") : null;
            case "java/util/concurrent/locks/LockSupport.unpark" -> call.to(CALLS, "unpark", "");
            case "java/util/concurrent/locks/LockSupport.park" -> call.to(CALLS, "park", "");
            case "java/util/concurrent/locks/LockSupport.parkNanos" -> call.to(CALLS, "parkNanos", "");
            case "java/util/concurrent/locks/LockSupport.parkUntil" -> call.to(CALLS, "parkUntil", "");
            default -> Calls.isUnknown(call.owner) ? call.unfollowed() : null;
        };
    }

    private static Redirect ofLock(Call call) {
        switch (call.origin.substring("java/util/concurrent/locks/".length())) {
            case "Lock", "ReentrantLock", "ReentrantReadWriteLock$ReadLock", "ReentrantReadWriteLock$WriteLock" -> {
                boolean isMeant = switch (call.name) {
                    case "lock", "lockInterruptibly", "tryLock", "unlock", "newCondition" -> true;
                    default -> false;
                };
                return isMeant ? call.to(LOCKS, call.name, LOCK) : null;
            }
            case "Condition", "AbstractQueuedSynchronizer$ConditionObject" -> {
                boolean isMeant = call.name.startsWith("await") || call.name.startsWith("signal");
                return isMeant ? call.to(LOCKS, call.name, CONDITION) : null;
            }
            case "ReadWriteLock", "ReentrantReadWriteLock" -> {
                return call.name.equals("readLock") || call.name.equals("writeLock") ? call.opaque(Calls.VIEW) : null;
            }
            default -> {
                return null;
            }
        }
    }

    /** A call of the program: the receiver's type, the class that the call names, and the class of the JDK that has the method. */
    record Call(int opcode, String receiver, String owner, String origin, String name, String type, boolean isInterface) {
        boolean isStatic() {
            return opcode == Opcodes.INVOKESTATIC;
        }

        String helperType() {
            return "(" + receiverType() + type.substring(1).replace(")", "I)");
        }

        private String receiverType() {
            return isStatic() ? "" : "L" + receiver + ";";
        }

        String key(String what) {
            return what + " " + opcode + " " + owner + " " + name + " " + type;
        }

        void invoke(MethodVisitor code) {
            loadAll(code, "(" + receiverType() + type.substring(1));
            code.visitMethodInsn(opcode, owner, name, type, isInterface);
        }

        int site() {
            return (Type.getArgumentsAndReturnSizes(type) >> 2) - (isStatic() ? 1 : 0);
        }

        /** A static method of the runtime does it all; it takes the receiver as this type. */
        Redirect to(String runtime, String method, String receiver) {
            String called = "(" + receiver + type.substring(1).replace(")", "I)");
            return new Redirect(key("to"), helperType(), code -> {
                loadAll(code, helperType());
                code.visitMethodInsn(Opcodes.INVOKESTATIC, runtime, method, called, false);
                code.visitInsn(Type.getReturnType(type).getOpcode(Opcodes.IRETURN));
            });
        }

        /** The call, and then a step on the thread that is its receiver. */
        Redirect followedBy(String step) {
            return new Redirect(key("then"), helperType(), code -> guarded(code, () -> { }, () -> {
                code.visitVarInsn(Opcodes.ALOAD, 0);
                code.visitVarInsn(Opcodes.ILOAD, site());
                code.visitMethodInsn(Opcodes.INVOKESTATIC, THREADS, step, "(" + OBJECT + "I)V", false);
            }, () -> code.visitMethodInsn(Opcodes.INVOKESTATIC, THREADS, "threw", "(Ljava/lang/Throwable;I)V", false)));
        }

        /** The call, and then a step with its answer on the thread that is its receiver. */
        Redirect answering(String step) {
            return new Redirect(key("then"), helperType(), code -> {
                invoke(code);
                code.visitInsn(Opcodes.DUP);
                code.visitVarInsn(Opcodes.ALOAD, 0);
                code.visitVarInsn(Opcodes.ILOAD, site());
                code.visitMethodInsn(Opcodes.INVOKESTATIC, THREADS, step, "(Z" + OBJECT + "I)V", false);
                code.visitInsn(Opcodes.IRETURN);
            });
        }

        /** A call that may order threads, or that reads or changes a collection; an event of its own if a specification names it. */
        Redirect opaque(int effect) {
            Type result = Type.getReturnType(type);
            boolean hasObject = result.getSort() == Type.OBJECT;
            String full = owner.replace('/', '.') + "." + name;
            int watched = Transformer.Watch.matches(watch.methods(), full) ? Methods.number(full) : 0;
            int tells = effect == Calls.VIEW ? Calls.NOTHING : Calls.tells(owner, name, type);
            boolean isStamped = origin.equals(Calls.STAMPED);
            return new Redirect(key("opaque"), helperType(), code -> guarded(code, () -> {
                int waits = Calls.waitsFor(name);
                if (waits >= 0) {
                    code.visitVarInsn(Opcodes.ALOAD, 0);
                    ClassRewriter.push(code, waits);
                    code.visitMethodInsn(Opcodes.INVOKESTATIC, CALLS, "waits", "(" + OBJECT + "I)V", false);
                }
                if (isStamped && Calls.endsHold(name)) {
                    code.visitVarInsn(Opcodes.ALOAD, 0);
                    code.visitMethodInsn(Opcodes.INVOKESTATIC, CALLS, "unhold", "(" + OBJECT + ")V", false);
                }
                if (watched != 0) {
                    arguments(code, "(L" + receiver + ";" + type.substring(1));
                    told(code, "call", watched);
                }
                code.visitVarInsn(Opcodes.ALOAD, 0);
                elements(code);
                ClassRewriter.push(code, effect);
                code.visitVarInsn(Opcodes.ILOAD, site());
                code.visitMethodInsn(Opcodes.INVOKESTATIC, CALLS, "begin", "(" + OBJECT + OBJECT + OBJECT + "II)V", false);
            }, () -> {
                code.visitInsn(hasObject ? Opcodes.DUP : Opcodes.ACONST_NULL);
                code.visitVarInsn(Opcodes.ALOAD, 0);
                elements(code);
                ClassRewriter.push(code, effect);
                ClassRewriter.push(code, tells);
                code.visitMethodInsn(Opcodes.INVOKESTATIC, CALLS, "end", "(" + OBJECT + OBJECT + OBJECT + OBJECT + "II)V", false);
                if (isStamped && Calls.hold(name) >= 0) {
                    code.visitInsn(Opcodes.DUP2);
                    code.visitVarInsn(Opcodes.ALOAD, 0);
                    ClassRewriter.push(code, Calls.hold(name));
                    code.visitMethodInsn(Opcodes.INVOKESTATIC, CALLS, "hold", "(J" + OBJECT + "I)V", false);
                }
                if (watched != 0) {
                    arguments(code, "(L" + receiver + ";)V");
                    if (result.getSort() != Type.VOID) {
                        code.visitInsn(result.getSize() == 2 ? Opcodes.DUP2 : Opcodes.DUP);
                        ClassRewriter.box(code, result);
                        code.visitMethodInsn(Opcodes.INVOKESTATIC, CodeRewriter.RT, "argument", "(" + OBJECT + ")V", false);
                    }
                    told(code, "returned", watched);
                }
            }, () -> {
                code.visitMethodInsn(Opcodes.INVOKESTATIC, CALLS, "threw", "(Ljava/lang/Throwable;I)V", false);
                if (watched != 0) {
                    told(code, "returned", watched);
                }
            }));
        }

        /** Pushes the first and the last argument that may be an element of a collection, or nothing in their places. */
        private void elements(MethodVisitor code) {
            List<Integer> elements = new ArrayList<>();
            int local = 1;
            for (Type argument : Type.getArgumentTypes(type)) {
                String name = argument.getDescriptor();
                if (argument.getSort() == Type.OBJECT && !name.startsWith("Ljava/util/function/") && !name.equals("Ljava/util/concurrent/TimeUnit;")) {
                    elements.add(local);
                }
                local += argument.getSize();
            }
            for (int i = 0; i < 2; i++) {
                if (i < elements.size()) {
                    code.visitVarInsn(Opcodes.ALOAD, elements.get(i == 0 ? 0 : elements.size() - 1));
                } else {
                    code.visitInsn(Opcodes.ACONST_NULL);
                }
            }
        }

        /** Records the first arguments of the helper as those of an event. */
        private static void arguments(MethodVisitor code, String types) {
            int local = 0;
            for (Type argument : Type.getArgumentTypes(types)) {
                code.visitVarInsn(argument.getOpcode(Opcodes.ILOAD), local);
                ClassRewriter.box(code, argument);
                code.visitMethodInsn(Opcodes.INVOKESTATIC, CodeRewriter.RT, "argument", "(" + OBJECT + ")V", false);
                local += argument.getSize();
            }
        }

        private void told(MethodVisitor code, String what, int method) {
            ClassRewriter.push(code, method);
            code.visitVarInsn(Opcodes.ILOAD, site());
            code.visitMethodInsn(Opcodes.INVOKESTATIC, CodeRewriter.RT, what, "(II)V", false);
        }

        /** A call of something whose order is not known. Methods of handles take what they are given, so it stays where it is. */
        Redirect unfollowed() {
            return new Redirect("the program calls " + owner.replace('/', '.') + "." + name + ", which is not followed", null, null);
        }

        /** The call between two steps; the last is made if it throws, with the exception and the site on the stack. */
        void guarded(MethodVisitor code, Runnable before, Runnable after, Runnable thrown) {
            Label start = new Label();
            Label end = new Label();
            Label handler = new Label();
            code.visitTryCatchBlock(start, end, handler, null);
            before.run();
            code.visitLabel(start);
            invoke(code);
            code.visitLabel(end);
            after.run();
            code.visitInsn(Type.getReturnType(type).getOpcode(Opcodes.IRETURN));
            code.visitLabel(handler);
            Type[] arguments = Type.getArgumentTypes(helperType());
            Object[] locals = new Object[arguments.length];
            for (int i = 0; i < locals.length; i++) {
                locals[i] = frameType(arguments[i]);
            }
            code.visitFrame(Opcodes.F_FULL, locals.length, locals, 1, new Object[] {"java/lang/Throwable"});
            code.visitInsn(Opcodes.DUP);
            code.visitVarInsn(Opcodes.ILOAD, site());
            thrown.run();
            code.visitInsn(Opcodes.ATHROW);
        }
    }

    private static Object frameType(Type type) {
        return switch (type.getSort()) {
            case Type.BOOLEAN, Type.CHAR, Type.BYTE, Type.SHORT, Type.INT -> Opcodes.INTEGER;
            case Type.LONG -> Opcodes.LONG;
            case Type.FLOAT -> Opcodes.FLOAT;
            case Type.DOUBLE -> Opcodes.DOUBLE;
            default -> type.getInternalName();
        };
    }
}
