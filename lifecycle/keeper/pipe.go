package keeper

import (
	"io"
	"os"
	"time"
)

// pipe is Chrome's debugging pipe. It carries one command in a browser's
// life; what matters is that it ends when we do, whatever ends us: then
// Chrome quits by itself and keeps its cookies.
type pipe struct{ in, out *os.File }

// newPipe returns our ends, and the two that Chrome reads from and writes to.
func newPipe() (*pipe, [2]*os.File, error) {
	theirIn, in, err := os.Pipe()
	if err != nil {
		return nil, [2]*os.File{}, err
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		theirIn.Close()
		in.Close()
		return nil, [2]*os.File{}, err
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	return &pipe{in, out}, [2]*os.File{theirIn, theirOut}, nil
}

// send sends one command. Its answer is of no interest: the end is the answer.
func (p *pipe) send(method string) {
	_ = p.in.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = p.in.WriteString(`{"id":1,"method":"` + method + "\"}\x00")
}

// close ends the pipe, which asks Chrome to quit.
func (p *pipe) close() {
	p.in.Close()
	p.out.Close()
}
