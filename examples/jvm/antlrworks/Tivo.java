import java.util.List;
import org.antlr.runtime.Token;
import org.antlr.works.debugger.DebuggerTab;
import org.antlr.works.debugger.events.DBEvent;
import org.antlr.works.debugger.events.DBEventEnterSubRule;
import org.antlr.works.debugger.events.DBEventLocation;
import org.antlr.works.debugger.input.DBInputProcessor;
import org.antlr.works.debugger.input.DBInputTextTokenInfo;
import org.antlr.works.debugger.tivo.DBPlayer;
import org.antlr.works.debugger.tivo.DBPlayerContextInfo;

/** ANTLRWorks' debugger plays events while another thread resets the player: playEvents is not synchronized, resetPlayEvents is. */
public class Tivo {
    /** The window, which has nothing to show here. */
    static final class NoWindow extends DebuggerTab {
        NoWindow() {
            super(null);
        }

        @Override
        public void resetGUI() {}

        @Override
        public void addEvent(DBEvent event, DBPlayerContextInfo info) {}

        @Override
        public void resetGrammarLocation() {}

        @Override
        public void setGrammarLocation(DBEventLocation event) {}
    }

    /** The input, of which there is none. */
    static final class NoInput implements DBInputProcessor {
        @Override
        public void reset() {}

        @Override
        public void removeAllLT() {}

        @Override
        public void rewind(int start) {}

        @Override
        public void rewindAll() {}

        @Override
        public void LT(Token token) {}

        @Override
        public void consumeToken(Token token, int flavor) {}

        @Override
        public void setLocation(DBEventLocation event) {}

        @Override
        public int getCurrentTokenIndex() {
            return 0;
        }

        @Override
        public DBInputTextTokenInfo getTokenInfoAtTokenIndex(int index) {
            return null;
        }
    }

    public static void main(String[] arguments) throws InterruptedException {
        System.setProperty("java.awt.headless", "true");
        DBPlayer player = new DBPlayer(new NoWindow());
        player.setInputBuffer(new NoInput());
        List<DBEvent> events = List.of(new DBEventEnterSubRule(1), new DBEventEnterSubRule(2));
        Thread play = new Thread(() -> player.playEvents(events, events.size(), false), "player");
        Thread reset = new Thread(() -> {
            pause(500);
            player.resetPlayEvents(true);
        }, "resetter");
        play.start();
        reset.start();
        play.join();
        reset.join();
        System.out.println("subrule " + player.getContextInfo().getSubrule());
    }

    private static void pause(long millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
