import org.apache.lucene.analysis.standard.StandardAnalyzer;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.StringField;
import org.apache.lucene.document.TextField;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.TermQuery;
import org.apache.lucene.store.ByteBuffersDirectory;

/** Three threads index documents with one writer, which merges in the background; then they are searched. */
public class Main {
    public static void main(String[] arguments) throws Exception {
        try (ByteBuffersDirectory directory = new ByteBuffersDirectory()) {
            IndexWriterConfig config = new IndexWriterConfig(new StandardAnalyzer()).setMaxBufferedDocs(10);
            try (IndexWriter writer = new IndexWriter(directory, config)) {
                Thread[] threads = new Thread[3];
                for (int t = 0; t < threads.length; t++) {
                    int base = t * 100;
                    threads[t] = new Thread(() -> index(writer, base), "indexer " + t);
                    threads[t].start();
                }
                for (Thread thread : threads) {
                    thread.join();
                }
                writer.commit();
            }
            try (DirectoryReader reader = DirectoryReader.open(directory)) {
                IndexSearcher searcher = new IndexSearcher(reader);
                System.out.println(reader.numDocs() + " documents, " + searcher.count(new TermQuery(new Term("text", "even"))) + " even");
            }
        }
    }

    private static void index(IndexWriter writer, int base) {
        try {
            for (int i = 0; i < 30; i++) {
                Document document = new Document();
                document.add(new StringField("id", Integer.toString(base + i), Field.Store.YES));
                document.add(new TextField("text", i % 2 == 0 ? "an even number" : "an odd number", Field.Store.NO));
                writer.addDocument(document);
            }
        } catch (java.io.IOException e) {
            throw new IllegalStateException(e);
        }
    }
}
