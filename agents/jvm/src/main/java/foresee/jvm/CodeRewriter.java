package foresee.jvm;

import java.util.Arrays;
import org.objectweb.asm.Handle;
import org.objectweb.asm.Label;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.Type;

/** Rewrites the code of one method. */
final class CodeRewriter extends MethodVisitor {
    static final String RT = "foresee/jvm/Rt";
    static final String LOG = "foresee/jvm/ThreadLog";
    static final String LOCAL = "foresee/jvm/Local";

    /** What keeps the call stack, or null. */
    private final StackRewriter stack;
    private final ClassRewriter type;
    private final String name;
    private final String descriptor;
    private final boolean isStatic;
    private final boolean isSynchronized;
    private final boolean isInitialiser;
    private final boolean isConstructor;
    /** The first local variable that the code does not use. */
    private final int scratch;
    /** Whether the JDK may be given what the method returns. */
    private final boolean returnsToJdk;
    /** The number of the method if a specification names it, else 0. */
    private final int watched;
    /** In a constructor, how many objects have been made and not constructed, before the superclass's constructor is called. */
    private int fresh;
    private boolean isConstructed;
    private int line;
    private final Label start = new Label();

    CodeRewriter(MethodVisitor next, StackRewriter stack, ClassRewriter type, int access, String name, String descriptor, int scratch) {
        super(Opcodes.ASM9, next);
        this.stack = stack;
        this.type = type;
        this.name = name;
        this.descriptor = descriptor;
        isStatic = (access & Opcodes.ACC_STATIC) != 0;
        isSynchronized = (access & Opcodes.ACC_SYNCHRONIZED) != 0;
        isInitialiser = name.equals("<clinit>");
        isConstructor = name.equals("<init>");
        isConstructed = !isConstructor;
        this.scratch = scratch;
        String result = Type.getReturnType(descriptor).getDescriptor();
        boolean isLambda = (access & Opcodes.ACC_SYNTHETIC) != 0 || name.contains("lambda");
        boolean isInherited = !isStatic && (access & Opcodes.ACC_PRIVATE) == 0 && (result.startsWith("[") || Transformer.isJdk(result.substring(1)));
        returnsToJdk = Log.hasLocals && Escapes.mayBeLocal(result) && (isLambda || isInherited && Hierarchy.isAsked(type.loader, type.facts));
        boolean isOrdinary = !isInitialiser && !isConstructor && (access & (Opcodes.ACC_BRIDGE | Opcodes.ACC_SYNTHETIC)) == 0;
        String full = type.title + "." + name;
        watched = isOrdinary && Transformer.Watch.matches(type.watch.methods(), full) ? Methods.number(full) : 0;
    }

    private int site() {
        return type.site(null, null, name, line);
    }

    private void rt(String method, String type) {
        super.visitMethodInsn(Opcodes.INVOKESTATIC, RT, method, type, false);
    }

    private void pushSite() {
        ClassRewriter.push(mv, site());
    }

    /** Before code of the agent that may call a method of the program. */
    private void calling() {
        if (stack != null) {
            stack.calling();
        }
    }

    // The whole method.

    @Override
    public void visitCode() {
        super.visitCode();
        if (type.type != 0 && !isInitialiser && (isStatic || isConstructor)) {
            ClassRewriter.push(mv, type.type);
            rt("uses", "(I)V");
        }
        if (type.type != 0 && isInitialiser) {
            ClassRewriter.push(mv, type.type);
            pushSite();
            rt("initialising", "(II)V");
        }
        if (isSynchronized) {
            pushMonitor();
            pushSite();
            rt("enteredMethod", "(Ljava/lang/Object;I)V");
        }
        if (watched != 0) {
            pushArguments();
            ClassRewriter.push(mv, watched);
            pushSite();
            rt("call", "(II)V");
        }
        if (isSynchronized || watched != 0) {
            super.visitLabel(start);
        }
    }

    private void pushMonitor() {
        if (isStatic) {
            super.visitLdcInsn(Type.getObjectType(type.facts.name));
        } else {
            super.visitVarInsn(Opcodes.ALOAD, 0);
        }
    }

    /** Records the receiver and the arguments of a method that a specification names. */
    private void pushArguments() {
        int local = 0;
        if (!isStatic) {
            super.visitVarInsn(Opcodes.ALOAD, 0);
            rt("argument", "(Ljava/lang/Object;)V");
            local = 1;
        }
        for (Type argument : Type.getArgumentTypes(descriptor)) {
            super.visitVarInsn(argument.getOpcode(Opcodes.ILOAD), local);
            ClassRewriter.box(mv, argument);
            rt("argument", "(Ljava/lang/Object;)V");
            local += argument.getSize();
        }
    }

    /** Before the method is left; the value that it returns, if any, is on the stack. */
    private void leave(int opcode) {
        if (isInitialiser && type.type != 0) {
            ClassRewriter.push(mv, type.type);
            pushSite();
            rt("initialised", "(II)V");
        }
        if (watched != 0) {
            if (!isStatic) {
                super.visitVarInsn(Opcodes.ALOAD, 0);
                rt("argument", "(Ljava/lang/Object;)V");
            }
            Type result = Type.getReturnType(descriptor);
            if (opcode != Opcodes.RETURN) {
                super.visitInsn(result.getSize() == 2 ? Opcodes.DUP2 : Opcodes.DUP);
                ClassRewriter.box(mv, result);
                rt("argument", "(Ljava/lang/Object;)V");
            }
            leaveWatched();
        }
        if (isSynchronized) {
            pushSite();
            rt("leavingMethod", "(I)V");
        }
    }

    private void leaveWatched() {
        ClassRewriter.push(mv, watched);
        pushSite();
        rt("returned", "(II)V");
    }

    @Override
    public void visitMaxs(int stack, int locals) {
        if (isSynchronized || watched != 0) {
            Label end = new Label();
            super.visitLabel(end);
            super.visitTryCatchBlock(start, end, end, null);
            // Nothing is known about the locals there, and nothing need be.
            super.visitFrame(Opcodes.F_FULL, 0, null, 1, new Object[] {"java/lang/Throwable"});
            if (watched != 0) {
                leaveWatched();
            }
            if (isSynchronized) {
                pushSite();
                rt("leavingMethod", "(I)V");
            }
            super.visitInsn(Opcodes.ATHROW);
        }
        super.visitMaxs(stack, locals);
    }

    @Override
    public void visitLineNumber(int line, Label start) {
        this.line = line;
        super.visitLineNumber(line, start);
    }

    // Instructions.

    @Override
    public void visitTypeInsn(int opcode, String type) {
        if (opcode == Opcodes.NEW) {
            fresh++;
        }
        super.visitTypeInsn(opcode, type);
        if (opcode == Opcodes.ANEWARRAY) {
            madeArray();
        }
    }

    @Override
    public void visitIntInsn(int opcode, int operand) {
        super.visitIntInsn(opcode, operand);
        if (opcode == Opcodes.NEWARRAY) {
            madeArray();
        }
    }

    private void local(String method, String type) {
        super.visitMethodInsn(Opcodes.INVOKESTATIC, LOCAL, method, type, false);
    }

    private void madeArray() {
        if (Log.hasLocals) {
            super.visitInsn(Opcodes.DUP);
            local("madeArray", "(Ljava/lang/Object;)V");
        }
    }

    /** The object on the stack is about to go where other threads may find it. */
    private void share() {
        super.visitInsn(Opcodes.DUP);
        local("share", "(Ljava/lang/Object;)V");
    }

    /** The same for those arguments of a call on the stack that may be local. */
    private void shareArguments(String descriptor) {
        Type[] arguments = Type.getArgumentTypes(descriptor);
        int first = 0;
        while (first < arguments.length && !Escapes.mayBeLocal(arguments[first].getDescriptor())) {
            first++;
        }
        if (first >= arguments.length - 1) {
            if (first == arguments.length - 1) {
                share();
            }
            return;
        }
        int local = scratch;
        for (int i = arguments.length - 1; i >= first; i--) {
            super.visitVarInsn(arguments[i].getOpcode(Opcodes.ISTORE), local);
            local += arguments[i].getSize();
        }
        for (int i = first; i < arguments.length; i++) {
            local -= arguments[i].getSize();
            super.visitVarInsn(arguments[i].getOpcode(Opcodes.ILOAD), local);
            if (Escapes.mayBeLocal(arguments[i].getDescriptor())) {
                share();
            }
        }
    }

    /** A field is written that has no helper. */
    private void storePlainly(int opcode, String owner, String field, String descriptor, boolean isEarly) {
        boolean isWrite = opcode == Opcodes.PUTFIELD || opcode == Opcodes.PUTSTATIC;
        if (isWrite && Log.hasLocals && Escapes.mayBeLocal(descriptor)) {
            if (opcode == Opcodes.PUTSTATIC || Transformer.isJdk(owner) || isEarly && !type.facts.hasState() && !Hierarchy.hasState(type.loader, type.facts)) {
                share();
            } else if (!isEarly) {
                super.visitInsn(Opcodes.DUP2);
                local("storing", "(Ljava/lang/Object;Ljava/lang/Object;)V");
            }
        }
        super.visitFieldInsn(opcode, owner, field, descriptor);
    }

    @Override
    public void visitFieldInsn(int opcode, String owner, String field, String descriptor) {
        boolean isOwn = owner.equals(type.facts.name);
        boolean isWrite = opcode == Opcodes.PUTFIELD || opcode == Opcodes.PUTSTATIC;
        // An object under construction cannot be passed to another method. No other thread has it either, but by then its
        // number
        // would have to be known: such a write is seen when the field is first read.
        boolean isEarly = isWrite && isOwn && !isConstructed;
        if (Transformer.isJdk(owner) || isOwn && type.facts.finals.contains(field + ":" + descriptor) || isEarly || !type.hasHelpers()) {
            storePlainly(opcode, owner, field, descriptor, isEarly);
            return;
        }
        if (owner.equals(type.facts.superName) && !packageOf(owner).equals(packageOf(type.facts.name)) && opcode != Opcodes.GETSTATIC && opcode != Opcodes.PUTSTATIC) {
            // A protected field of another package may be accessed in objects of this class only, and the type of this one is not known.
            Log.unordered("accesses of " + owner.replace('/', '.') + "." + field + " in " + type.title + " are not recorded");
            super.visitFieldInsn(opcode, owner, field, descriptor);
            return;
        }
        boolean isStaticField = opcode == Opcodes.GETSTATIC || opcode == Opcodes.PUTSTATIC;
        if (isStaticField && !isOwn) {
            // It may initialise the class.
            calling();
        }
        ClassRewriter.push(mv, type.site(owner.replace('/', '.'), field + ":" + descriptor, name, line));
        if (!isStaticField && (isWrite || isKnown(descriptor))) {
            Accesses.call(this.mv, isWrite, descriptor);
            return;
        }
        String arguments = (isStaticField ? "" : "L" + owner + ";") + (isWrite ? descriptor : "") + "I";
        String helperType = "(" + arguments + ")" + (isWrite ? "V" : descriptor);
        type.callHelper(mv, "field " + opcode + " " + owner + " " + field + " " + descriptor, helperType,
                code -> Helpers.field(code, opcode, owner, field, descriptor));
    }

    /** Whether a value of this type can be cast to it here: the class of another package may not be accessible. */
    private boolean isKnown(String descriptor) {
        Type value = Type.getType(descriptor);
        Type element = value.getSort() == Type.ARRAY ? value.getElementType() : value;
        if (element.getSort() != Type.OBJECT) {
            return true;
        }
        String named = element.getInternalName();
        return named.startsWith("java/") || packageOf(named).equals(packageOf(type.facts.name));
    }

    private static String packageOf(String type) {
        return type.substring(0, Math.max(0, type.lastIndexOf('/')));
    }

    @Override
    public void visitInsn(int opcode) {
        boolean isElement = opcode >= Opcodes.IALOAD && opcode <= Opcodes.SALOAD || opcode >= Opcodes.IASTORE && opcode <= Opcodes.SASTORE;
        if (type.isLeftOut && isElement) {
            if (opcode == Opcodes.AASTORE && Log.hasLocals) {
                rt("store", "([Ljava/lang/Object;ILjava/lang/Object;)V");
            } else {
                super.visitInsn(opcode);
            }
            return;
        }
        switch (opcode) {
            case Opcodes.IALOAD -> load("iaload", "([III)I");
            case Opcodes.LALOAD -> load("laload", "([JII)J");
            case Opcodes.FALOAD -> load("faload", "([FII)F");
            case Opcodes.DALOAD -> load("daload", "([DII)D");
            case Opcodes.CALOAD -> load("caload", "([CII)C");
            case Opcodes.SALOAD -> load("saload", "([SII)S");
            case Opcodes.BALOAD -> load("baload", "(Ljava/lang/Object;II)I");
            case Opcodes.IASTORE -> load("iastore", "([IIII)V");
            case Opcodes.LASTORE -> load("lastore", "([JIJI)V");
            case Opcodes.FASTORE -> load("fastore", "([FIFI)V");
            case Opcodes.DASTORE -> load("dastore", "([DIDI)V");
            case Opcodes.CASTORE -> load("castore", "([CIII)V");
            case Opcodes.SASTORE -> load("sastore", "([SIII)V");
            case Opcodes.BASTORE -> load("bastore", "(Ljava/lang/Object;III)V");
            case Opcodes.AASTORE -> load("aastore", "([Ljava/lang/Object;ILjava/lang/Object;I)V");
            case Opcodes.AALOAD -> {
                super.visitInsn(Opcodes.DUP2);
                load("aaloadBegin", "([Ljava/lang/Object;II)V");
                super.visitInsn(opcode);
                super.visitInsn(Opcodes.DUP);
                rt("aaloadEnd", "(Ljava/lang/Object;)V");
            }
            case Opcodes.MONITORENTER -> {
                super.visitInsn(Opcodes.DUP);
                super.visitInsn(Opcodes.DUP);
                load("request", "(Ljava/lang/Object;I)V");
                super.visitInsn(opcode);
                load("entered", "(Ljava/lang/Object;I)V");
            }
            case Opcodes.MONITOREXIT -> {
                super.visitInsn(Opcodes.DUP);
                load("leaving", "(Ljava/lang/Object;I)V");
                super.visitInsn(opcode);
            }
            case Opcodes.IRETURN, Opcodes.LRETURN, Opcodes.FRETURN, Opcodes.DRETURN, Opcodes.ARETURN, Opcodes.RETURN -> {
                if (opcode == Opcodes.ARETURN && returnsToJdk) {
                    share();
                }
                leave(opcode);
                super.visitInsn(opcode);
            }
            default -> super.visitInsn(opcode);
        }
    }

    /** Writes an instruction that is not recorded. */
    void plain(int opcode) {
        super.visitInsn(opcode);
    }

    private void load(String method, String type) {
        pushSite();
        rt(method, type);
    }

    @Override
    public void visitMethodInsn(int opcode, String owner, String method, String descriptor, boolean isInterface) {
        boolean wasConstructed = isConstructed;
        if (opcode == Opcodes.INVOKESPECIAL && method.equals("<init>")) {
            if (fresh == 0) {
                isConstructed = true;
            } else {
                fresh--;
            }
        }
        boolean isSuper = isConstructor && opcode == Opcodes.INVOKESPECIAL && method.equals("<init>") && isConstructed && !wasConstructed;
        boolean isOwn = opcode == Opcodes.INVOKESPECIAL && (method.equals("<init>") || owner.equals(type.facts.name));
        Helpers.Redirect redirect = isOwn ? null : Helpers.of(type, opcode, owner, method, descriptor, isInterface);
        if (redirect == null || !type.hasHelpers()) {
            if (Log.hasLocals && Escapes.mayTakeLocal(descriptor) && isJdk(opcode, owner, method, descriptor, isOwn) && !Escapes.keepsNothing(owner, method, descriptor)) {
                shareArguments(descriptor);
            }
            super.visitMethodInsn(opcode, owner, method, descriptor, isInterface);
            if (Log.hasLocals) {
                after(owner, method, descriptor, isSuper);
            }
            return;
        }
        if (Log.hasLocals && !Escapes.keepsNothing(owner, method, descriptor) && !owner.equals("java/lang/System") && !owner.equals("java/util/Arrays")) {
            shareArguments(descriptor);
        }
        if (redirect.isUnfollowed()) {
            super.visitLdcInsn(redirect.key());
            super.visitMethodInsn(Opcodes.INVOKESTATIC, "foresee/jvm/Calls", "unfollowed", "(Ljava/lang/String;)V", false);
            super.visitMethodInsn(opcode, owner, method, descriptor, isInterface);
            return;
        }
        calling();
        pushSite();
        type.callHelper(mv, redirect.key(), redirect.type(), redirect.body());
    }

    /** Whether a method is the JDK's, under its own name or that of a class that inherits it. */
    private boolean isJdk(int opcode, String owner, String method, String descriptor, boolean isOwn) {
        return Transformer.isJdk(owner)
                || opcode != Opcodes.INVOKESTATIC && !isOwn && !owner.startsWith("[") && !Hierarchy.origin(type.loader, owner, method, descriptor).equals(owner);
    }

    /** After a call: what it made may be local, or not. */
    private void after(String owner, String method, String descriptor, boolean isSuper) {
        if (isSuper && owner.equals("java/lang/Object") && type.facts.hasState()) {
            super.visitVarInsn(Opcodes.ALOAD, 0);
            local("made", "(Ljava/lang/Object;)V");
        } else if (owner.startsWith("[") && method.equals("clone")) {
            madeArray();
        } else if (owner.equals("java/lang/Class") && method.equals("newInstance")
                || owner.equals("java/lang/invoke/MethodHandle") && method.startsWith("invoke") && Escapes.mayBeLocal(Type.getReturnType(descriptor).getDescriptor())) {
            share();
        }
    }

    /** A reference to a method that has a helper becomes a reference to the helper. */
    @Override
    public void visitInvokeDynamicInsn(String method, String descriptor, Handle bootstrap, Object... arguments) {
        Object[] rewritten = arguments.clone();
        boolean isLambda = bootstrap.getOwner().equals("java/lang/invoke/LambdaMetafactory");
        if (isLambda && type.hasHelpers() && rewritten.length > 1 && rewritten[1] instanceof Handle handle) {
            rewritten[1] = rewrite(handle, Type.getArgumentTypes(descriptor));
        }
        if (Log.hasLocals && !bootstrap.getOwner().equals("java/lang/invoke/StringConcatFactory") && !bootstrap.getOwner().equals("java/lang/runtime/ObjectMethods")
                && !bootstrap.getOwner().equals("java/lang/runtime/SwitchBootstraps")) {
            shareArguments(descriptor);
        }
        super.visitInvokeDynamicInsn(method, descriptor, bootstrap, rewritten);
    }

    /** The first arguments of the helper must be of the very types that are captured. */
    private Handle rewrite(Handle handle, Type[] captured) {
        int opcode = switch (handle.getTag()) {
            case Opcodes.H_INVOKEVIRTUAL -> Opcodes.INVOKEVIRTUAL;
            case Opcodes.H_INVOKEINTERFACE -> Opcodes.INVOKEINTERFACE;
            case Opcodes.H_INVOKESTATIC -> Opcodes.INVOKESTATIC;
            default -> 0;
        };
        Helpers.Redirect redirect = opcode == 0 ? null : Helpers.of(type, opcode, handle.getOwner(), handle.getName(), handle.getDesc(), handle.isInterface());
        if (redirect == null) {
            return Log.hasLocals ? sharing(handle, opcode, captured) : handle;
        }
        if (redirect.isUnfollowed()) {
            Log.unordered(redirect.key());
            return handle;
        }
        int site = site();
        // The same without the site, which is its last argument.
        Type[] all = Type.getArgumentTypes(redirect.type());
        Type[] taken = Arrays.copyOf(all, all.length - 1);
        System.arraycopy(captured, 0, taken, 0, Math.min(captured.length, taken.length));
        String plain = Type.getMethodDescriptor(Type.getReturnType(redirect.type()), taken);
        String called = type.helper(redirect.key(), redirect.type(), redirect.body());
        String name = type.helper("reference " + site + " " + plain + redirect.key(), plain, code -> {
            Helpers.loadAll(code, plain);
            if (Log.hasLocals) {
                Helpers.shareAll(code, plain);
            }
            ClassRewriter.push(code, site);
            code.visitMethodInsn(Opcodes.INVOKESTATIC, type.facts.name, called, redirect.type(), type.facts.isInterface);
            code.visitInsn(Type.getReturnType(plain).getOpcode(Opcodes.IRETURN));
        });
        return new Handle(Opcodes.H_INVOKESTATIC, type.facts.name, name, plain, type.facts.isInterface);
    }

    /**
     * A reference to a method that the JDK may call: what it makes or returns is shared, and so is what it is given, if it is a
     * method of the JDK.
     */
    private Handle sharing(Handle handle, int opcode, Type[] captured) {
        boolean isNew = handle.getTag() == Opcodes.H_NEWINVOKESPECIAL;
        boolean isJdk = Transformer.isJdk(handle.getOwner());
        String result = isNew ? "L" + handle.getOwner() + ";" : Type.getReturnType(handle.getDesc()).getDescriptor();
        boolean isOfLambda = handle.getOwner().equals(type.facts.name) && (handle.getName().contains("lambda") || handle.getName().contains("$anonfun"));
        boolean takes = isJdk && !Escapes.keepsNothing(handle.getOwner(), handle.getName(), handle.getDesc());
        boolean isPrivate = handle.getTag() == Opcodes.H_INVOKESPECIAL && handle.getOwner().equals(type.facts.name);
        if (isOfLambda || !isNew && !isPrivate && opcode == 0 || !takes && (isJdk || !Escapes.mayBeLocal(result))) {
            return handle;
        }
        String receiver = isNew || opcode == Opcodes.INVOKESTATIC ? "" : "L" + handle.getOwner() + ";";
        Type[] taken = Type.getArgumentTypes("(" + receiver + handle.getDesc().substring(1));
        System.arraycopy(captured, 0, taken, 0, Math.min(captured.length, taken.length));
        String plain = Type.getMethodDescriptor(Type.getType(result), taken);
        String name = type.helper("sharing " + handle + plain, plain, code -> {
            if (isNew) {
                code.visitTypeInsn(Opcodes.NEW, handle.getOwner());
                code.visitInsn(Opcodes.DUP);
            }
            Helpers.loadAll(code, plain);
            if (takes) {
                Helpers.shareAll(code, plain);
            }
            code.visitMethodInsn(isNew || isPrivate ? Opcodes.INVOKESPECIAL : opcode, handle.getOwner(), handle.getName(), handle.getDesc(), handle.isInterface());
            if (!isJdk && Escapes.mayBeLocal(result)) {
                code.visitInsn(Opcodes.DUP);
                code.visitMethodInsn(Opcodes.INVOKESTATIC, LOCAL, "share", "(Ljava/lang/Object;)V", false);
            }
            code.visitInsn(Type.getReturnType(plain).getOpcode(Opcodes.IRETURN));
        });
        return new Handle(Opcodes.H_INVOKESTATIC, type.facts.name, name, plain, type.facts.isInterface);
    }
}
