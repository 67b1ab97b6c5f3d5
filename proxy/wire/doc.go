// Package wire is one WebSocket: a [Link], with the queue of what is to be
// written, its one writer, the buffers that messages are read into, and the
// [Reason] why it ended. [Accept] makes one of a client's handshake, [Dial] one
// to the browser.
//
//	socket ← corkConn (a batch is one system call) ← frameConn (how long, how many) ← gorilla ← Link
//
// Under TLS a patientConn lies below crypto/tls. A message has one owner: Read
// hands it over, Push takes it, and the writer, or who drops it, calls [Free].
package wire
