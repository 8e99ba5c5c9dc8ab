"""When things happen: recording, inferring, binding and running Programs."""
