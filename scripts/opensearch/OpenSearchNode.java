// A real OpenSearch server in one process, for tests: one node on loopback, without
// the bootstrap checks and the security manager of an installation.
// Usage: java -cp 'JARS/*' OpenSearchNode.java FOLDER PORT

import java.nio.file.Path;
import java.util.List;
import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;
import org.opensearch.node.Node;
import org.opensearch.transport.Netty4Plugin;

public class OpenSearchNode extends Node {
    OpenSearchNode(Environment environment) {
        super(environment, List.of(Netty4Plugin.class), true);
    }

    public static void main(String[] args) throws Exception {
        Path home = Path.of(args[0]);
        Settings settings = Settings.builder()
            .put("path.home", home.toString())
            .put("path.data", home.resolve("data").toString())
            .put("cluster.name", "tidings-test")
            .put("node.name", "tidings-test")
            .put("discovery.type", "single-node")
            .put("network.host", "127.0.0.1")
            .put("http.port", args[1])
            .put("http.type", "netty4")
            .put("transport.port", "0")
            .put("transport.type", "netty4")
            .put("cluster.routing.allocation.disk.threshold_enabled", false)
            .build();
        new OpenSearchNode(new Environment(settings, home.resolve("config"))).start();
        System.out.println("ready");
        // Until it is killed, or whoever started it has gone.
        while (System.in.read() != -1) {
        }
        System.exit(0);
    }
}
