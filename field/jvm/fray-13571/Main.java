import java.io.IOException;
import org.apache.lucene.analysis.standard.StandardAnalyzer;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.StringField;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.Term;
import org.apache.lucene.store.ByteBuffersDirectory;

/** Lucene issue 13571: while all is flushed, a document gets a number that its delete queue had not set aside. */
public class Main {
    public static void main(String[] arguments) throws Exception {
        try (ByteBuffersDirectory directory = new ByteBuffersDirectory();
                IndexWriter writer = new IndexWriter(directory, new IndexWriterConfig(new StandardAnalyzer()))) {
            Thread indexer = new Thread(() -> index(writer), "indexer");
            Thread reader = new Thread(() -> read(writer), "reader");
            indexer.start();
            reader.start();
            indexer.join();
            reader.join();
            writer.commit();
            System.out.println(writer.getDocStats().numDocs + " documents");
        }
    }

    private static void index(IndexWriter writer) {
        try {
            for (int i = 0; i < 8; i++) {
                Document document = new Document();
                document.add(new StringField("id", Integer.toString(i), Field.Store.YES));
                writer.updateDocument(new Term("id", Integer.toString(i)), document);
            }
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    private static void read(IndexWriter writer) {
        try {
            for (int i = 0; i < 3; i++) {
                DirectoryReader.open(writer).close();
            }
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }
}
