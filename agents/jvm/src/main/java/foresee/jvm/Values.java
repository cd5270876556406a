package foresee.jvm;

/** Values in records: numbers and boxes by value, other objects by their numbers. */
final class Values {
    static final int BOOLEAN = 1;
    static final int INTEGER = 2;
    static final int FLOAT = 3;
    static final int OBJECT = 4;

    private Values() {}

    static int type(Object value) {
        // Nearly all values are none of these.
        if (!(value instanceof Number) && !(value instanceof Boolean) && !(value instanceof Character)) {
            return OBJECT;
        }
        if (value instanceof Boolean) {
            return BOOLEAN;
        }
        if (value instanceof Integer || value instanceof Long || value instanceof Short || value instanceof Byte || value instanceof Character) {
            return INTEGER;
        }
        return value instanceof Double || value instanceof Float ? FLOAT : OBJECT;
    }

    static long bits(Object value, int type, ThreadLog log) {
        return switch (type) {
            case BOOLEAN -> (Boolean) value ? 1 : 0;
            case INTEGER -> value instanceof Character c ? c : ((Number) value).longValue();
            case FLOAT -> Double.doubleToRawLongBits(((Number) value).doubleValue());
            default -> Ids.of(value, log);
        };
    }
}
