package keeper

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// pipe is Chrome's debugging pipe. It ends when we do, whatever ends us: then
// Chrome quits by itself and keeps its cookies. What Chrome says goes to the
// proxy that is connected to it (relay.go), or nowhere.
type pipe struct {
	// static after newPipe
	in, out  *os.File
	gone     chan struct{} // closed when Chrome has closed its end
	patience time.Duration // of a proxy with the one before it
	most     int64         // bytes of a message; one more, and Chrome hears nothing any more

	turn chan struct{} // holds one token: one proxy at a time

	writing sync.Mutex
	to      *bufio.Writer // guarded by writing, message by message

	mu    sync.Mutex
	last  int                     // id of the newest command of our own
	waits map[int]chan<- struct{} // commands of our own whose answer is waited for
	proxy io.Closer               // the connected proxy
	hears func() io.WriteCloser   // begins a message to it; nil: it has said nothing yet, or is none
	roots map[string]struct{}     // sessions at the root of this, Chrome's one client
	quits bool                    // Chrome was asked to end
}

const (
	// proxyID is the first id that can be a proxy's: all of them have ten
	// digits, and ours fewer.
	proxyID = 1_000_000_000
	// pipeSize is how much is read and written at once.
	pipeSize = 64 << 10
)

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
	p := &pipe{
		in: in, out: out, gone: make(chan struct{}), patience: 5 * time.Second, most: 100<<20 - 1,
		turn:  make(chan struct{}, 1),
		to:    bufio.NewWriterSize(struct{ io.Writer }{in}, pipeSize), // os.File.ReadFrom makes a buffer for each message
		waits: map[int]chan<- struct{}{},
		roots: map[string]struct{}{},
	}
	go p.read()
	return p, [2]*os.File{theirIn, theirOut}, nil
}

// read takes in what Chrome says, until its end. It waits for a proxy that
// reads slowly, and so does Chrome.
func (p *pipe) read() {
	defer p.ended()
	in := bufio.NewReaderSize(p.out, pipeSize)
	for {
		text, err := in.ReadSlice(0)
		if bytes.HasPrefix(text, attached) && errors.Is(err, bufio.ErrBufferFull) { // with an address of many KiB
			var rest []byte
			text = bytes.Clone(text)
			rest, err = in.ReadBytes(0)
			text = append(text, rest...)
		}
		whole := err == nil
		if !whole && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
		var to io.WriteCloser = nowhere{}
		if id := answerTo(text); id > 0 && id < proxyID {
			p.answered(id)
		} else {
			p.note(text)
			to = p.listener()
		}
		for {
			if whole {
				text = text[:len(text)-1]
			}
			_, _ = to.Write(text) // when it fails, the proxy's reader knows it too
			if whole {
				break
			}
			text, err = in.ReadSlice(0)
			if whole = err == nil; !whole && !errors.Is(err, bufio.ErrBufferFull) {
				return
			}
		}
		_ = to.Close()
	}
}

// ended cuts off whoever waits for Chrome, which is gone.
func (p *pipe) ended() {
	close(p.gone)
	p.cut()
}

// answerTo is the id of the command that a message answers, or 0: Chrome
// writes it first.
func answerTo(text []byte) (id int) {
	digits, ok := bytes.CutPrefix(text, []byte(`{"id":`))
	if !ok {
		return 0
	}
	for _, d := range digits {
		if d < '0' || d > '9' {
			break
		}
		id = id*10 + int(d-'0')
	}
	return id
}

// command writes a command of our own, and returns its id.
func (p *pipe) command(method, params string, answered chan<- struct{}) (id int, err error) {
	p.mu.Lock()
	p.last++
	id = p.last
	if answered != nil {
		p.waits[id] = answered
	}
	p.mu.Unlock()
	p.writing.Lock()
	defer p.writing.Unlock()
	_, _ = fmt.Fprintf(p.to, `{"id":%d,"method":"%s","params":{%s}}`, id, method, params)
	return id, p.end()
}

// end ends a message. The writing lock is held.
func (p *pipe) end() error {
	_ = p.to.WriteByte(0) // Flush tells
	return p.to.Flush()
}

// ask waits until Chrome answers at all.
func (p *pipe) ask(ctx context.Context) error {
	answered := make(chan struct{})
	id, err := p.command("Browser.getVersion", "", answered)
	if err == nil {
		select {
		case <-answered:
			return nil
		case <-p.gone:
			err = errGone
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waits, id)
	return err
}

var errGone = errors.New("its debugging pipe was closed by Chrome")

func (p *pipe) answered(id int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.waits[id]; c != nil {
		close(c)
		delete(p.waits, id)
	}
}

// quit asks Chrome to end. The end is the answer.
func (p *pipe) quit() {
	p.mu.Lock()
	p.quits = true
	p.mu.Unlock()
	p.cut()                                                // a proxy that hangs must not keep Chrome from writing its last
	_ = p.in.SetWriteDeadline(time.Now().Add(time.Second)) // of a Chrome that does not read
	_, _ = p.command("Browser.close", "", nil)
}

// close ends the pipe, which asks Chrome to quit.
func (p *pipe) close() {
	p.in.Close()
	p.out.Close()
}
