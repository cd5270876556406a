import java.io.StringReader;
import java.io.StringWriter;
import javax.xml.transform.Templates;
import javax.xml.transform.TransformerException;
import javax.xml.transform.stream.StreamResult;
import javax.xml.transform.stream.StreamSource;

/** Four threads transform a document with one compiled stylesheet of Xalan. */
public class Main {
    private static final String SHEET = "<xsl:stylesheet version='1.0' xmlns:xsl='http://www.w3.org/1999/XSL/Transform'>"
            + "<xsl:output method='text'/><xsl:template match='/'><xsl:for-each select='//item'><xsl:sort select='@n' data-type='number'"
            + " order='descending'/><xsl:value-of select='concat(@n, \" \")'/></xsl:for-each></xsl:template></xsl:stylesheet>";

    public static void main(String[] arguments) throws Exception {
        Templates sheet = new org.apache.xalan.processor.TransformerFactoryImpl().newTemplates(new StreamSource(new StringReader(SHEET)));
        StringBuilder text = new StringBuilder("<list>");
        for (int i = 0; i < 20; i++) {
            text.append("<item n='").append(i * 7 % 20).append("'/>");
        }
        String document = text.append("</list>").toString();
        String[] results = new String[4];
        Thread[] threads = new Thread[results.length];
        for (int t = 0; t < threads.length; t++) {
            int number = t;
            threads[t] = new Thread(() -> results[number] = transform(sheet, document), "transformer " + t);
            threads[t].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        for (String result : results) {
            System.out.println(result);
        }
    }

    private static String transform(Templates sheet, String document) {
        StringWriter result = new StringWriter();
        try {
            for (int i = 0; i < 5; i++) {
                result.getBuffer().setLength(0);
                sheet.newTransformer().transform(new StreamSource(new StringReader(document)), new StreamResult(result));
            }
        } catch (TransformerException e) {
            throw new IllegalStateException(e);
        }
        return result.toString();
    }
}
