{{- define "flagadmin.image" -}}
{{ required "Set image.repository to where you have pushed the image" .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
