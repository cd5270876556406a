import java.io.IOException;
import org.apache.lucene.analysis.standard.StandardAnalyzer;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.StringField;
import org.apache.lucene.index.ConcurrentMergeScheduler;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.LogDocMergePolicy;
import org.apache.lucene.index.MergePolicy;
import org.apache.lucene.store.ByteBuffersDirectory;

/** Lucene issue 13593: a scheduler that may run one merge at a time runs two. Two threads flush segments, which makes merges due. */
public class Main {
    /** Its merges have a name that a specification can use. */
    static final class OneAtATime extends ConcurrentMergeScheduler {
        @Override
        protected void doMerge(MergeSource source, MergePolicy.OneMerge merge) throws IOException {
            super.doMerge(source, merge);
        }
    }

    public static void main(String[] arguments) throws Exception {
        OneAtATime scheduler = new OneAtATime();
        scheduler.setMaxMergesAndThreads(1, 1);
        LogDocMergePolicy policy = new LogDocMergePolicy();
        policy.setMergeFactor(2);
        try (ByteBuffersDirectory directory = new ByteBuffersDirectory();
                IndexWriter writer = new IndexWriter(directory, new IndexWriterConfig(new StandardAnalyzer()).setMaxBufferedDocs(2)
                        .setMergeScheduler(scheduler).setMergePolicy(policy))) {
            Thread[] threads = new Thread[2];
            for (int t = 0; t < threads.length; t++) {
                int base = t * 100;
                threads[t] = new Thread(() -> index(writer, base), "indexer " + t);
                threads[t].start();
            }
            for (Thread thread : threads) {
                thread.join();
            }
        }
        System.out.println("done");
    }

    private static void index(IndexWriter writer, int base) {
        try {
            for (int i = 0; i < 6; i++) {
                Document document = new Document();
                document.add(new StringField("id", Integer.toString(base + i), Field.Store.YES));
                writer.addDocument(document);
            }
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }
}
