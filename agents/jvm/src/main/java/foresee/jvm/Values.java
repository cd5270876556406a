package foresee.jvm;

/** Values in records: numbers and boxes by value, other objects by their numbers. */
final class Values {
    private Values() {}

    static int type(Object value) {
        if (value == null) {
            return 'L';
        }
        if (value instanceof Boolean) {
            return 'Z';
        }
        if (value instanceof Integer || value instanceof Long || value instanceof Short || value instanceof Byte || value instanceof Character) {
            return 'I';
        }
        return value instanceof Double || value instanceof Float ? 'D' : 'L';
    }

    static long bits(Object value, int type, ThreadLog log) {
        return switch (type) {
            case 'Z' -> (Boolean) value ? 1 : 0;
            case 'I' -> value instanceof Character c ? c : ((Number) value).longValue();
            case 'D' -> Double.doubleToRawLongBits(((Number) value).doubleValue());
            default -> Ids.of(value, log);
        };
    }
}
