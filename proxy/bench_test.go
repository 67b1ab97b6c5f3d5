package proxy

import (
	"context"
	"fmt"
	"testing"

	"github.com/gorilla/websocket"
	"github.com/rs/zerolog"

	"cdpmux/proxy/proxytest"
)

// BenchmarkCommand sends commands and reads their replies, with the fake
// browser alone and with the proxy before it, one at a time and 64 ahead.
func BenchmarkCommand(b *testing.B) {
	browser, err := proxytest.New(proxytest.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer browser.Close()
	s := New(Config{Logger: zerolog.Nop(), Life: Life{Start: func(context.Context) (Place, error) { return Place{Address: browser.URL()}, nil }}})
	listener := listen(b)
	served := make(chan error)
	go func() { served <- s.Serve(listener) }()
	defer func() {
		if err := s.Shutdown(context.Background()); err != nil {
			b.Error(err)
		}
		<-served
	}()
	for name, url := range map[string]string{"direct": browser.URL(), "proxy": "ws://" + listener.Addr().String() + "/client-a"} {
		for _, ahead := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/%d", name, ahead), func(b *testing.B) {
				ws, _, err := websocket.DefaultDialer.Dial(url, nil)
				if err != nil {
					b.Fatal(err)
				}
				defer ws.Close()
				b.ReportAllocs()
				sent := 0
				for read := 0; read < b.N; read++ {
					for ; sent < min(b.N, read+ahead); sent++ {
						text := fmt.Appendf(nil, `{"id":%d,"method":"Browser.getVersion"}`, sent)
						if err := ws.WriteMessage(websocket.TextMessage, text); err != nil {
							b.Fatal(err)
						}
					}
					if _, _, err := ws.ReadMessage(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
