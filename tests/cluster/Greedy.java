import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.lang.reflect.Field;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.conf.Configured;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.NullWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.Mapper;
import org.apache.hadoop.mapreduce.lib.input.FileInputFormat;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.apache.hadoop.util.Tool;
import org.apache.hadoop.util.ToolRunner;
import sun.misc.Unsafe;

/**
 * A job whose first attempts of each map take all that they can get of something, and whose later
 * ones copy its lines: `Greedy memory|processes|disk IN OUT`. -Dgreedy.attempts=N (default 1) take.
 */
public final class Greedy extends Configured implements Tool {
    private static final int PIECE = 1 << 20;

    /** Takes, or copies its lines. */
    public static final class GreedyMapper extends Mapper<LongWritable, Text, NullWritable, Text> {
        @Override
        protected void setup(Context context) throws IOException {
            Configuration settings = context.getConfiguration();
            if (context.getTaskAttemptID().getId() < settings.getInt("greedy.attempts", 1)) {
                take(settings.get("greedy.what"));
            }
        }

        @Override
        protected void map(LongWritable at, Text line, Context context)
                throws IOException, InterruptedException {
            context.write(NullWritable.get(), line);
        }
    }

    private static void take(String what) throws IOException {
        switch (what) {
            case "memory":
                takeMemory();
                break;
            case "processes":
                while (true) {
                    new ProcessBuilder("sleep", "100000").start();
                }
            case "disk":
                // The attempt's own folder, which is on /data.
                try (OutputStream file = new FileOutputStream("filler")) {
                    byte[] piece = new byte[PIECE];
                    while (true) {
                        file.write(piece);
                    }
                }
            default:
                throw new IOException("no " + what);
        }
    }

    /** Takes memory outside the heap, which Java does not limit. */
    private static void takeMemory() throws IOException {
        try {
            Field field = Unsafe.class.getDeclaredField("theUnsafe");
            field.setAccessible(true);
            Unsafe memory = (Unsafe) field.get(null);
            while (true) {
                memory.setMemory(memory.allocateMemory(PIECE), PIECE, (byte) 1);
            }
        } catch (ReflectiveOperationException error) {
            throw new IOException(error);
        }
    }

    @Override
    public int run(String[] words) throws Exception {
        Job job = Job.getInstance(getConf(), "greedy " + words[0]);
        job.getConfiguration().set("greedy.what", words[0]);
        job.setJarByClass(Greedy.class);
        job.setMapperClass(GreedyMapper.class);
        job.setNumReduceTasks(0);
        job.setOutputKeyClass(NullWritable.class);
        job.setOutputValueClass(Text.class);
        FileInputFormat.addInputPath(job, new Path(words[1]));
        FileOutputFormat.setOutputPath(job, new Path(words[2]));
        return job.waitForCompletion(true) ? 0 : 1;
    }

    public static void main(String[] words) throws Exception {
        System.exit(ToolRunner.run(new Configuration(), new Greedy(), words));
    }
}
