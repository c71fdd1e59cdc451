{{- define "millrace.name" -}}
{{- if contains "millrace" .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-millrace" .Release.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "millrace.selector" -}}
app.kubernetes.io/name: millrace
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "millrace.image" -}}
{{ .Values.image.repository }}{{ with .Values.image.tag }}:{{ . }}{{ end }}
{{- end }}

{{- /* What all pods of the platform have in common. */}}
{{- define "millrace.pod" -}}
enableServiceLinks: false
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile:
    type: RuntimeDefault
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
volumes:
  - name: settings
    secret:
      secretName: {{ .Values.existingSecret }}
      items:
        - key: millrace.conf
          path: millrace.conf
      defaultMode: 0440
  - name: data
    emptyDir: {}
  - name: tmp
    emptyDir: {}
{{- end }}

{{- define "millrace.container" -}}
image: {{ include "millrace.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
volumeMounts:
  - name: settings
    mountPath: /etc/millrace
    readOnly: true
  - name: data
    mountPath: /var/lib/millrace
  - name: tmp
    mountPath: /tmp
{{- end }}

{{- /* A folder of our own below the volume, which others in the group write to. */}}
{{- define "millrace.place" -}}
- name: MILLRACE_CONFIG
  value: /etc/millrace/millrace.conf
- name: MILLRACE_DATA
  value: /var/lib/millrace/data
{{- end }}

{{- define "millrace.settings" -}}
{{ include "millrace.place" . }}
- name: MILLRACE_PUBLIC_URLS
  value: {{ join "," .Values.publicUrls | quote }}
- name: MILLRACE_ADMIN_LISTEN
  value: 0.0.0.0:9090
- name: MILLRACE_LOG_FORMAT
  value: json
- name: MILLRACE_ATTEMPTS_URL
  value: http://{{ include "millrace.name" . }}.{{ .Release.Namespace }}.svc:{{ .Values.server.service.port }}
{{- range $name, $value := .Values.settings }}
- name: MILLRACE_{{ $name | upper | replace "-" "_" }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}

{{- define "millrace.spread" -}}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "millrace.selector" . | nindent 8 }}
{{- end }}
