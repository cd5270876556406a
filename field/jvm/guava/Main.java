import com.google.common.cache.CacheBuilder;
import com.google.common.cache.CacheLoader;
import com.google.common.cache.LoadingCache;
import com.google.common.util.concurrent.Futures;
import com.google.common.util.concurrent.ListenableFuture;
import com.google.common.util.concurrent.ListeningExecutorService;
import com.google.common.util.concurrent.MoreExecutors;
import com.google.common.util.concurrent.RateLimiter;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executors;

/** Futures, a loading cache and a rate limiter of Guava, used by four threads of a pool. */
public class Main {
    public static void main(String[] arguments) throws Exception {
        ListeningExecutorService pool = MoreExecutors.listeningDecorator(Executors.newFixedThreadPool(4));
        RateLimiter limiter = RateLimiter.create(100_000);
        LoadingCache<Integer, String> cache = CacheBuilder.newBuilder().maximumSize(10).build(new CacheLoader<>() {
            @Override
            public String load(Integer key) {
                return "value " + key;
            }
        });
        List<ListenableFuture<Integer>> all = new ArrayList<>();
        for (int t = 0; t < 8; t++) {
            int base = t;
            ListenableFuture<Integer> length = pool.submit(() -> {
                int sum = 0;
                for (int i = 0; i < 20; i++) {
                    limiter.acquire();
                    sum += cache.get((base + i) % 15).length();
                }
                return sum;
            });
            all.add(Futures.transform(length, n -> n + 1, MoreExecutors.directExecutor()));
        }
        int sum = 0;
        for (int n : Futures.allAsList(all).get()) {
            sum += n;
        }
        pool.shutdown();
        System.out.println(sum);
    }
}
